# Reads the CSV form of benchstat's comparison of two files and exits with 1 when a case
# is slower by more than margin percent or allocates more. A row is: case, base,
# interval, now, interval, change, p value; the change is "~" when it is not significant.
/sec\/op/ { unit = "time" }
/allocs\/op/ { unit = "allocs" }
/^(geomean)?,|^$/ || NF < 7 || $2 == "" || $4 == "" { next }
unit == "time" && $6 ~ /^\+/ && $6 + 0 > margin { print "slower: " $1 " " $6; bad = 1 }
unit == "allocs" && $4 + 0 > $2 + 0 { print "allocates: " $1 " " $2 " -> " $4; bad = 1; next }
unit == "allocs" && $1 ~ /^Request\// && $4 + 0 > 0 { print "allocates: " $1 " " $4; bad = 1 }
END { exit bad }

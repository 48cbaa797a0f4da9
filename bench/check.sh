#!/usr/bin/env bash
# Compares what requests cost in the working tree with the last release, on this
# machine, and exits with 1 when a case has become slower or allocates more.
#
#   BASE=revision  compare with it; otherwise the newest tag v* behind HEAD, else
#                  the commit named in bench/release
#   ROUNDS=12      rounds of base, now, now, base
#   BENCH=regexp   which benchmarks
#   MARGIN=3       percent by which a case may be slower
set -euo pipefail
cd "$(git rev-parse --show-toplevel)"

rounds=${ROUNDS:-12} bench=${BENCH:-'^BenchmarkRequest$|^BenchmarkScale$/^keys=1000$'} margin=${MARGIN:-3}
base=${BASE:-}
if [ -z "$base" ]; then
	from=HEAD # a tag on an unchanged HEAD would be compared with itself
	if [ -z "$(git status --porcelain --untracked-files=no)" ] && git describe --tags --exact-match --match 'v*' >/dev/null 2>&1; then
		from=HEAD^
	fi
	base=$(git describe --tags --abbrev=0 --match 'v*' "$from" 2>/dev/null || sed -n '/^[^#]/{s/[[:space:]].*//;p;q}' bench/release)
fi
if ! commit=$(git rev-parse --verify --quiet "$base^{commit}"); then
	echo "bench-check: no revision $base here; git fetch --unshallow --tags may bring it" >&2
	exit 2
fi

temp=$(mktemp -d)
trap 'git worktree remove --force "$temp/tree" 2>/dev/null || true; rm -rf "$temp"; git worktree prune' EXIT
git worktree add --quiet --detach "$temp/tree" "$commit"
echo "building the benchmarks of $base and of the working tree" >&2
go -C "$temp/tree/bench" test -c -trimpath -o "$temp/base.test" .
go -C bench test -c -trimpath -o "$temp/now.test" .

# measure base|now folder: one run. The least of four readings of a case counts: it
# is the one that other processes disturbed least.
measure() {
	(cd "$2" && GOMAXPROCS=1 "$temp/$1.test" -test.run '^$' -test.bench "$bench" -test.benchmem -test.benchtime 150x -test.count 4) |
		awk '/^Benchmark/ {
			gsub(/,/, ";", $1) # a comma would end the field in the CSV form
			cost = $3; allocs = ""
			for (i = 3; i < NF; i += 2) { if ($(i + 1) == "cpu-µs/op") cost = $i * 1000; if ($(i + 1) == "allocs/op") allocs = $i }
			if (!($1 in least)) { order[++n] = $1; least[$1] = cost; fewest[$1] = allocs }
			if (cost < least[$1]) least[$1] = cost
			if (allocs < fewest[$1]) fewest[$1] = allocs
		} END { for (i = 1; i <= n; i++) printf "%s 1 %s ns/op %s allocs/op\n", order[i], least[order[i]], fewest[order[i]] }' >>"$temp/$1.txt"
}

for round in $(seq "$rounds"); do
	echo "round $round of $rounds" >&2
	order="base now now base"
	[ $((round % 2)) = 1 ] || order="now base base now"
	for which in $order; do
		if [ "$which" = base ]; then measure base "$temp/tree/bench"; else measure now bench; fi
	done
done

benchstat() { go tool -modfile=internal/tools/go.mod benchstat -alpha 0.01 "$@" "base=$temp/base.txt" "now=$temp/now.txt"; }
[ -s "$temp/now.txt" ] || { echo "bench-check: no benchmark matches $bench" >&2; exit 2; }
benchstat
benchstat -format csv 2>/dev/null | awk -F, -v "margin=$margin" -f bench/judge.awk || { echo "bench-check: requests cost more than at $base" >&2; exit 1; }

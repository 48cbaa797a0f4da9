#!/usr/bin/env bash
# Runs each fuzz target for a while: fuzz.sh [time], 10s by default. A failing input
# stays in testdata/fuzz, to be committed with its fix.
set -euo pipefail

time=${1:-10s}
output=$(mktemp)
trap 'rm -f "$output"' EXIT

# fuzz package target
fuzz() {
	if go -C "$1" test -run '^$' -fuzz "^$2\$" -fuzztime "$time" . </dev/null 2>&1 | tee "$output"; then
		return
	fi
	# When the time runs out while an input is being sent to a worker, go test reports a
	# failure without an input.
	if grep -q 'context deadline exceeded' "$output" && ! grep -q 'Failing input' "$output"; then
		echo "(the time ran out, no input failed)"
		return
	fi
	return 1
}

failed=0
while IFS=: read -r file _ declaration; do
	target=${declaration#func }
	target=${target%%(*}
	echo "- $(dirname "$file") $target ($time)"
	fuzz "$(dirname "$file")" "$target" || failed=1
done < <(grep -rn --include='*_test.go' --exclude-dir=node_modules '^func Fuzz[A-Z0-9_]' .)
exit "$failed"

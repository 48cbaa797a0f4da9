#!/usr/bin/env bash
# Runs every linter over the modules of the product and of the load tests, all of
# them even when one reports something.
set -uo pipefail

tools=$PWD/internal/tools
tool() { go tool -modfile="$tools/go.mod" "$@"; }

failed=0
# check name command...
check() {
	echo "- $1"
	shift
	"$@" || failed=1
}

for module in . loadtest; do
	cd "$module" || exit 1
	check "go vet ($module)" go vet ./...
	check "staticcheck ($module)" tool staticcheck ./...
	check "go fix ($module)" go fix -diff ./...
	cd - >/dev/null || exit 1
done
# Packages for tests may ignore errors, as tests do.
packages=$(go list ./... | grep -vE '/(internal/testenv|internal/e2e|bench)(/|$)')
# shellcheck disable=SC2086 # one word each
check "errcheck" tool errcheck -ignoretests -exclude internal/tools/errcheck.txt $packages
exit "$failed"

#!/usr/bin/env bash
# Runs every linter over the whole module, all of them even when one finds
# something.
set -uo pipefail

tool() { go tool -modfile=internal/tools/go.mod "$@"; }

failed=0
# check name command...
check() {
	echo "- $1"
	shift
	"$@" || failed=1
}

check "go vet" go vet ./...
check "staticcheck" tool staticcheck ./...
# What serves tests may drop errors as tests do.
packages=$(go list ./... | grep -vE '/(internal/testenv|internal/e2e|bench|loadtest)(/|$)')
# shellcheck disable=SC2086 # one word each
check "errcheck" tool errcheck -ignoretests -exclude internal/tools/errcheck.txt $packages
check "go fix" go fix -diff ./...
exit "$failed"

#!/usr/bin/env bash
# Fails when a file is not formatted, and names it.
set -euo pipefail

unformatted=$(go tool -modfile=internal/tools/go.mod gofumpt -l .)
if [ -n "$unformatted" ]; then
	echo "not formatted, run \"make fmt\":" >&2
	echo "$unformatted" >&2
	exit 1
fi

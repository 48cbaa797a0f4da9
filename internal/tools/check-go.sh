#!/usr/bin/env bash
# Checks that the Go on the PATH can build Sluice, and prints a remedy if not.
set -euo pipefail

wanted=$(sed -n 's/^go //p' go.mod)

if ! command -v go >/dev/null; then
	echo "Go is missing. Sluice needs Go $wanted or later." >&2
	if [ -x /usr/local/go/bin/go ]; then
		echo "There is one in /usr/local/go/bin; put it on the PATH:" >&2
		echo "    export PATH=\$PATH:/usr/local/go/bin" >&2
	else
		echo "Install it from https://go.dev/dl/ (the Debian package is too old) and put its bin directory on the PATH." >&2
	fi
	exit 1
fi

# With GOTOOLCHAIN=auto an older Go downloads the version in go.mod, and this prints that
# version.
found=$(go env GOVERSION)
found=${found#go}
oldest=$(printf '%s\n%s\n' "$wanted" "${found%% *}" | sort -V | head -n 1)
if [ "$oldest" != "$wanted" ]; then
	echo "Go $found is too old: Sluice needs Go $wanted or later. Install it from https://go.dev/dl/ and put its bin directory first on the PATH." >&2
	exit 1
fi

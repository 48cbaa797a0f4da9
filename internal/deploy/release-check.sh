#!/usr/bin/env bash
# Builds a release twice, the second time from a clone in another folder with an empty build
# cache, and fails when a file differs.
set -euo pipefail
cd "$(dirname "$0")/../.."

platforms=${1:-linux/amd64,linux/arm64,darwin/arm64}
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT

go run ./internal/deploy/release -out "$work/first" -platforms "$platforms"
git clone -q . "$work/elsewhere/clone"
echo "building again with an empty cache; this takes minutes"
(cd "$work/elsewhere/clone" && GOCACHE="$work/cache" go run ./internal/deploy/release -out "$work/second" -platforms "$platforms")
diff -r "$work/first" "$work/second"
echo "both builds are equal"

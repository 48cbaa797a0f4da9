#!/usr/bin/env bash
# Fails when admin/store/db differs from the output of "make generate": a file that
# differs, or one without queries.
set -euo pipefail

failed=0
go tool -modfile=internal/tools/go.mod sqlc diff -f sql/sqlc.yaml || failed=1
for file in admin/store/db/*.sql.go; do
	queries=sql/queries/$(basename "$file" .go)
	if [ ! -f "$queries" ]; then
		echo "$file is obsolete: there is no $queries" >&2
		failed=1
	fi
done
if [ "$failed" != 0 ]; then
	echo "generated code is not up to date: run \"make generate\" and commit the result" >&2
fi
exit "$failed"

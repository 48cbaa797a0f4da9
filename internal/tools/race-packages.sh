#!/usr/bin/env bash
# Prints the packages whose tests run under the race detector: those whose own code starts
# goroutines, or has locks or atomics. Left out are end-to-end tests, which run other processes,
# and bench, as allocation budgets do not hold with the detector.
set -euo pipefail

go list -f '{{if .TestGoFiles}}{{.Dir}} {{.ImportPath}} {{join .GoFiles " "}}{{else if .XTestGoFiles}}{{.Dir}} {{.ImportPath}} {{join .GoFiles " "}}{{end}}' ./... |
	while read -r dir path files; do
		case $path in
		*/internal/e2e/* | */bench | */bench/* | */internal/layers | */internal/testenv) continue ;;
		esac
		# shellcheck disable=SC2086 # names of Go files have no spaces
		if [ -n "$files" ] && (cd "$dir" && grep -qE '"sync(/atomic)?"|^[[:space:]]*go (func|[a-z])|\.Go\(func' $files); then
			echo "$path"
		fi
	done

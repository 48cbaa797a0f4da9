# "make help" lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Tools are pinned in a module of their own, so that the product does not depend on
# what they depend on.
TOOL := go tool -modfile=internal/tools/go.mod

BENCH ?= .
COUNT ?= 1
K6 ?= 0
LOADTEST ?=
FUZZTIME ?= 10s
RACE ?=
VERSION ?=
PLATFORMS ?=

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: go
go:
	@internal/tools/check-go.sh

.PHONY: up
up: go ## install missing programs, build, and run everything in one process with demo data
	@internal/tools/install-deps.sh postgres
	@$(MAKE) --no-print-directory build
	./sluice up --demo

.PHONY: build
build: go ## build ./sluice, one static binary
	CGO_ENABLED=0 go build -trimpath -o sluice .

.PHONY: ui
ui: go ## build the management UI into admin/ui/ui.zip (needs Node.js 20.19 or later)
	cd admin/ui/web && npm ci --ignore-scripts --no-audit --no-fund && npm test && npm run build
	go run ./admin/ui/pack

.PHONY: ui-check
ui-check: go ## fail when admin/ui/ui.zip is not what its sources build; without a suitable Node.js, say so
	@if ! node -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 22 || (a == 22 && b >= 12) || (a == 20 && b >= 19) ? 0 : 1)' 2>/dev/null; then \
	echo "ui-check: Node.js 20.19 or 22.12 or later is needed to build the UI again; go test ./admin/ui compares the hash of its sources"; exit 0; fi; \
	(cd admin/ui/web && npm ci --ignore-scripts --no-audit --no-fund && npm test && npm run build) && go run ./admin/ui/pack -check

.PHONY: screenshots
screenshots: go install-deps ## take the pictures of the README anew, in .github/screenshots
	mkdir -p .github/screenshots
	SLUICE_README_SHOTS=$(CURDIR)/.github/screenshots go test ./internal/e2e/browser -run 'TestStories/readme' -count=1

.PHONY: install-deps
install-deps: ## install missing servers for the product and its tests
	@internal/tools/install-deps.sh postgres store rabbitmq node browser guides units

.PHONY: test
test: go install-deps ## run all tests, against real servers
	SLUICE_TEST_REQUIRE_SERVERS=1 go test -timeout 45m ./...
	go -C loadtest test ./...

.PHONY: race
race: go install-deps ## run the tests under the race detector (RACE=./gateway/... for some)
	@internal/tools/install-deps.sh compiler
	packages="$(or $(RACE),$$(internal/tools/race-packages.sh))" && \
	SLUICE_TEST_REQUIRE_SERVERS=1 CGO_ENABLED=1 go test -race -timeout 30m $$packages

.PHONY: lint
lint: go ## vet, staticcheck, errcheck and go fix -diff
	@internal/tools/lint.sh

.PHONY: fmt
fmt: go ## format and modernise the code
	go fix ./...
	go -C loadtest fix ./...
	$(TOOL) gofumpt -w .

.PHONY: fmt-check
fmt-check: go ## fail when the code is not formatted
	@internal/tools/fmt-check.sh

.PHONY: generate
generate: go ## write admin/store/db from sql (building sqlc takes a minute or two the first time)
	rm -f admin/store/db/*.sql.go
	$(TOOL) sqlc generate -f sql/sqlc.yaml

.PHONY: generate-check
generate-check: go ## fail when generated code is out of date
	@internal/tools/generate-check.sh

.PHONY: bench
bench: go install-deps ## measure whole requests, with benchstat (BENCH=regexp, COUNT=runs)
	@out=$$(mktemp); trap 'rm -f "$$out"' EXIT; \
	go test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) -timeout 60m ./bench/... | tee "$$out"; \
	$(TOOL) benchstat "$$out"

.PHONY: bench-check
bench-check: go ## fail when requests cost more than at the last release (BASE=revision ROUNDS=12, see bench/check.sh)
	@BASE='$(BASE)' ROUNDS='$(ROUNDS)' bench/check.sh

.PHONY: loadtest
loadtest: go ## measure under load next to other proxies, with vegeta (K6=1 adds k6; LOADTEST=flags, see loadtest/README.md)
	@K6=$(K6) loadtest/run $(LOADTEST)

.PHONY: fuzz
fuzz: go ## run each fuzz target for FUZZTIME
	@internal/tools/fuzz.sh $(FUZZTIME)

.PHONY: ci
ci: ## run what CI runs
	@.ci/run

.PHONY: release
release: go ## build archives, packages, lists of modules and checksums of this commit into an empty dist (VERSION=v1.2.0 PLATFORMS=linux/amd64)
	rm -rf dist
	go run ./internal/deploy/release -version "$(VERSION)" $(if $(PLATFORMS),-platforms "$(PLATFORMS)")

.PHONY: release-check
release-check: go ## fail when another folder and an empty cache build other bytes (PLATFORMS=linux/amd64 for one platform)
	@internal/deploy/release-check.sh "$(PLATFORMS)"

.PHONY: deploy-check
deploy-check: go ## have the libraries of the tools that deploy read what is in internal/deploy
	go -C internal/deploy/tools test ./...

.PHONY: release-notes
release-notes: go ## print the notes of VERSION out of CHANGELOG.md
	@go run ./internal/deploy/releasenotes "$(VERSION)" CHANGELOG.md

.PHONY: clean
clean: ## remove the binary
	rm -f sluice

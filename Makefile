# "make help" lists the targets.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Tools are pinned in a module of their own, so that the product's has none of
# their dependencies.
TOOL := go tool -modfile=internal/tools/go.mod

BENCH ?= .
COUNT ?= 1
K6 ?= 0
LOADTEST ?=
BASE ?=
CHECK ?=
FUZZTIME ?= 10s
RACE ?=

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: go
go:
	@internal/tools/check-go.sh

.PHONY: up
up: go ## install what is missing, build, and run everything in one process with demo data
	@internal/tools/install-deps.sh postgres
	@$(MAKE) --no-print-directory build
	./sluice up --demo

.PHONY: build
build: go ## build ./sluice, one static binary
	CGO_ENABLED=0 go build -trimpath -o sluice .

.PHONY: install-deps
install-deps: ## install the servers that the product and its tests need, if missing
	@internal/tools/install-deps.sh postgres store node

.PHONY: test
test: go install-deps ## run all tests, against real servers
	SLUICE_TEST_REQUIRE_SERVERS=1 go test ./...

.PHONY: race
race: go install-deps ## run the tests under the race detector (RACE=./gateway/... for some)
	@internal/tools/install-deps.sh compiler
	@# Whole processes and allocation budgets have nothing to gain from the detector.
	packages="$(or $(RACE),$$(go list ./... | grep -vE '/(internal/e2e|bench|loadtest)(/|$$)'))" && \
	SLUICE_TEST_REQUIRE_SERVERS=1 CGO_ENABLED=1 go test -race $$packages

.PHONY: lint
lint: go ## vet, staticcheck, errcheck, and what go fix would modernise
	@internal/tools/lint.sh

.PHONY: fmt
fmt: go ## format and modernise the code
	go fix ./...
	$(TOOL) gofumpt -w .

.PHONY: fmt-check
fmt-check: go ## fail when the code is not formatted
	@internal/tools/fmt-check.sh

.PHONY: generate
generate: go ## write admin/store/db from sql (building sqlc takes a minute or two the first time)
	rm -f admin/store/db/*.sql.go
	$(TOOL) sqlc generate -f sql/sqlc.yaml

.PHONY: generate-check
generate-check: go ## fail when generated code is not what generate would write
	@internal/tools/generate-check.sh

.PHONY: bench
bench: go install-deps ## measure whole requests, with benchstat when it is installed (BENCH=regexp, COUNT=runs)
	@out=$$(mktemp); trap 'rm -f "$$out"' EXIT; \
	go test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) -timeout 60m ./bench/... | tee "$$out"; \
	if command -v benchstat >/dev/null; then benchstat "$$out"; fi

.PHONY: bench-check
bench-check: go ## fail when requests cost more than at the last release (BASE=revision, CHECK=flags, see bench/README.md)
	@go run ./bench/check $(if $(BASE),-base '$(BASE)') $(CHECK)

.PHONY: sizing
sizing: go ## write the tables of bench/SIZING.md from the model in bench/sizing
	go test -count 1 ./bench/sizing -update

.PHONY: loadtest
loadtest: go ## measure under load, beside other proxies (K6=1 adds k6; LOADTEST=flags, see loadtest/README.md)
	@K6=$(K6) loadtest/run $(LOADTEST)

.PHONY: fuzz
fuzz: go ## run each fuzz target for FUZZTIME
	@internal/tools/fuzz.sh $(FUZZTIME)

.PHONY: ci
ci: ## run what CI runs
	@.ci/run

.PHONY: clean
clean: ## remove what build made
	rm -f sluice

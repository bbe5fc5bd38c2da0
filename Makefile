# `make` or `make help` lists what there is.
.DEFAULT_GOAL := help

GOLANGCI_LINT_VERSION := v2.15.0
GOVULNCHECK_VERSION := v1.9.0
COMPOSE_GO_VERSION := v2.16.2
export GOFLAGS ?= -buildvcs=false

.PHONY: help
help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## build the binary ./codea1
	go build -o codea1 .

.PHONY: train
train: ## train the embedded models on the built-in problems
	go run . train

.PHONY: test
test: ## run all tests
	go test ./...

.PHONY: race
race: ## run all tests under the race detector
	go test -race ./...

.PHONY: bench
bench: ## run all benchmarks once
	go test -run '^$$' -bench . ./...

.PHONY: fuzz
fuzz: ## fuzz every decoder for ten seconds each
	@go list ./... | while read -r pkg; do \
	  for target in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
	    go test -run '^$$' -fuzz "^$$target$$" -fuzztime 10s -fuzzminimizetime 5x $$pkg || exit 1; \
	  done; \
	done

.PHONY: generate
generate: ## write generated files anew: schemas, kernels
	go generate ./...

.PHONY: lint
lint: ## format, vet and lint
	@test -z "$$(gofmt -l .)" || { gofmt -l .; exit 1; }
	go vet ./...
	go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION) run

.PHONY: vuln
vuln: ## look up known vulnerabilities of the dependencies (needs the Go vulnerability database)
	go run golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION) ./...

.PHONY: ci
ci: ## what CI runs
	bash .ci/run

.PHONY: clean
clean: ## remove the binary and all runs
	rm -rf codea1 runs

# `make` lists the targets. All of them work in any POSIX shell, with GNU Make 3.81 or newer.

GO       ?= go
TOOL     := $(GO) tool -modfile=$(CURDIR)/tools.mod
RACE     ?= -race
TIMEOUT  ?= 10m
BENCH    ?= .
COUNT    ?= 10
FUZZTIME ?= 30s
OUT      ?= bench.out
OLD      ?=
SUITE    ?= .conformance
SUITE_AT ?= b55b8bda3dbb8c927c04e85bd8d496a8caa3e4ba

# What would bring a dependency that few need is a module of its own.
MODULES  := $(sort $(patsubst %/go.mod,%,$(shell find . -name go.mod -not -path '*/.*/*' -not -path '*/testdata/*')))

.DEFAULT_GOAL := help
.PHONY: help test redis postgresql lint race once fuzz bench cover conformance example load clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# One after the other even under -j: tests against a real server keep time, and lint beside them would be noise.
test: ## everything that must hold: lint, tests with race detector on real servers, each benchmark once
	@$(MAKE) --no-print-directory redis
	@$(MAKE) --no-print-directory postgresql
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory race
	@$(MAKE) --no-print-directory once
	@command -v redis-server >/dev/null || \
		echo "LEFT OUT: every test and benchmark that needs a real redis-server, because there is none here."
	@$(FIND_POSTGRESQL) || \
		echo "LEFT OUT: every test that needs a real PostgreSQL, because there is none here."

# Not everywhere are the programs of a PostgreSQL server on the PATH.
FIND_POSTGRESQL := command -v initdb >/dev/null || \
	ls /usr/lib/postgresql/*/bin/initdb /usr/libexec/postgresql*/initdb /usr/pgsql-*/bin/initdb \
		/opt/homebrew/opt/postgresql@*/bin/initdb /usr/local/opt/postgresql@*/bin/initdb 2>/dev/null | grep -q .

redis: ## install redis-server with the system's package manager, where it is missing and that is permitted
	@command -v redis-server >/dev/null || { \
		$(call install,redis-server,redis-server,redis,redis,redis); \
		command -v redis-server || $(call missing,redis-server); \
	}

postgresql: ## the same for a PostgreSQL server
	@$(FIND_POSTGRESQL) || { \
		$(call install,PostgreSQL,postgresql,postgresql-server,postgresql,postgresql@17); \
		$(FIND_POSTGRESQL) || $(call missing,PostgreSQL); \
	}

# $(call install,what,package of apt-get,of dnf,of apk,of brew)
install = as() { if [ "$$(id -u)" = 0 ]; then "$$@"; elif sudo -n true 2>/dev/null; then sudo "$$@"; else echo "that takes root, or sudo without a password"; return 1; fi; }; \
	has() { command -v "$$1" >/dev/null; }; \
	echo "== $(1) is missing: installing it"; \
	{ \
		if   has apt-get; then as apt-get -q update && as env DEBIAN_FRONTEND=noninteractive apt-get -qy install --no-install-recommends $(2); \
		elif has dnf;     then as dnf -qy install $(3); \
		elif has apk;     then as apk add --quiet $(4); \
		elif has brew;    then brew install --quiet $(5); \
		fi; \
	} >install.out 2>&1

missing = { tail -n 5 install.out; echo "could not install $(1); the tests that need it are skipped, and fail where CI=true"; }; rm -f install.out

lint: ## gofmt, go vet, staticcheck
	@echo "== gofmt, go vet, staticcheck"
	@unformatted=$$(gofmt -s -l .) || exit 1; \
	[ -z "$$unformatted" ] || { echo "gofmt -s -w these:"; echo "$$unformatted"; exit 1; }
	@set -e; for module in $(MODULES); do (cd $$module; $(GO) vet ./...; $(TOOL) staticcheck ./...); done

# Compiled together, run one package after the other: those beside it would take the time that real servers keep.
race: ## the tests, fuzz seeds and examples included, with the race detector
	@echo "== go test $(RACE)"
	@set -e; for module in $(MODULES); do ( \
		cd $$module; \
		$(GO) test $(RACE) -run='^$$' ./... >/dev/null || true; \
		$(GO) test $(RACE) -p 1 -timeout=$(TIMEOUT) ./... || { \
			echo "== once more, only the packages that failed: real servers keep time, a busy machine may not"; \
			$(GO) test $(RACE) -p 1 -timeout=$(TIMEOUT) ./...; \
		} \
	); done

once: ## each benchmark once, so that none rots
	@echo "== benchmarks, once each"
	@set -e; for module in $(MODULES); do (cd $$module; $(GO) test -run='^$$' -bench=. -benchtime=1x -timeout=$(TIMEOUT) ./...); done

fuzz: ## fuzz every Fuzz function for FUZZTIME (30s)
	@for package in $$($(GO) list ./...); do \
		names=$$($(GO) test -list='^Fuzz' $$package) || { echo "$$names"; exit 1; }; \
		for name in $$(echo "$$names" | grep '^Fuzz'); do \
			echo "== $$package $$name"; \
			$(GO) test -run='^$$' -fuzz="^$$name\$$" -fuzztime=$(FUZZTIME) $$package || exit 1; \
		done; \
	done

bench: ## benchmarks matching BENCH, COUNT (10) times each, into OUT (bench.out); OLD=file compares with an earlier one
	@echo "== benchmarks, $(COUNT) times each: this takes a while"
	@$(GO) test -run='^$$' -bench='$(BENCH)' -benchmem -count=$(COUNT) -timeout=0 ./... >$(OUT) || { cat $(OUT); exit 1; }
	@$(TOOL) benchstat $(OLD) $(OUT)

cover: ## the statements that the tests reach, by function, and in all
	@$(GO) test -timeout=$(TIMEOUT) -coverpkg=./... -coverprofile=cover.out ./...
	@$(GO) tool cover -func=cover.out

conformance: ## the public suite http-tests/cache-tests against the middleware, from a clone in SUITE; needs git, node and npm
	@[ -d $(SUITE) ] || { git clone -q https://github.com/http-tests/cache-tests $(SUITE) && git -C $(SUITE) checkout -q $(SUITE_AT); }
	@[ -d $(SUITE)/node_modules ] || (cd $(SUITE) && npm install --omit=dev --no-audit --no-fund --silent)
	@$(GO) run ./bench/conformance -suite $(SUITE) -required 158 -failing 2 -optimal 94

example: ## the main job on real input: a documentation server, three replicas of it, a stampede
	@$(GO) run ./example

load: ## the load program: naive, singleflight only and bellwether side by side on a real redis-server
	@$(GO) run ./bench

clean: ## remove what the targets above leave
	@rm -f bench.out cover.out install.out *.test *.prof
	@rm -rf .conformance

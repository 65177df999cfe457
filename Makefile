# firstflight: everything there is to do, one target each. `make help` lists them.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PROGRAMS := chromium firefox-esr wget2 curl man nginx
LAB := python/firstflight/_bin/firstflight-lab
PRELOAD := python/firstflight/_bin/libfirstflight_preload.so
MAN := wheel/data/share/man/man1/firstflight.1
VEGA := python/firstflight/report/templates/vega.js
SITE := target/zensical
DIST := target/dist/tools

# A uv on the PATH, else one of our own beside the Rust build.
UV := $(or $(shell command -v uv),target/uv/bin/uv)
OWN_UV := $(filter target/%,$(UV))
# Building it takes minutes, so `make audit` is a lane of its own that `make lint` does not wait for.
DENY := target/deny/bin/cargo-deny
DENY_VERSION := 0.20.2

RUST := Cargo.toml Cargo.lock $(shell find crates -path crates/playground -prune -o \( -name '*.rs' -o -name Cargo.toml \) -print)
CORE := Cargo.toml Cargo.lock $(shell find crates/page crates/path crates/load crates/loader crates/quic crates/tcp crates/sim crates/python -name '*.rs' -o -name Cargo.toml)

# The simulator for a browser. WASM_CARGO: a cargo that has the target, where the one on the PATH has not.
WASM_CARGO ?= cargo
WASM := target/wasm/wasm32-wasip1/wasm/firstflight_playground.wasm
PLAYGROUND := target/playground/playground.html

# The profile of everything that cargo compiles here. CI has its own, in Cargo.toml.
PROFILE ?= release
CARGO_OPTIONS := --profile $(PROFILE) --locked

# The binding crate is a Python module: it has no tests of its own and links only with Python.
CRATES := --workspace --exclude firstflight-python

export PYO3_PYTHON := $(abspath $(BIN)/python)

.PHONY: help build run test crates lint audit advisories reference docs playground data dist dist-test bench clean system rust

help: ## list the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' Makefile | expand -t 18

build: $(LAB) $(VENV)/.extension ## build everything (the default)

run: build ## do the paper's experiment; ends with the table and where the report lies
	$(BIN)/firstflight run --plan plans/paper.toml --repeats 10

test: build ## run all tests; with BESIDE=lint, `make lint` at the same time
	MAKE="$(MAKE)" tests/run $(BIN)/python $(BESIDE)

crates:
	cargo test --quiet $(CARGO_OPTIONS) $(CRATES)
	@# Tests of recordings, which are not part of the repository.
	if [ -d ../shared/data ]; then cargo test --quiet $(CARGO_OPTIONS) $(CRATES) --test traces -- --ignored; fi

lint: build ## check format, style, words, types and the stub of the compiled module
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/python scripts/prose.py
	$(BIN)/mypy
	MYPYPATH=python $(BIN)/python -m mypy.stubtest firstflight._core
	cargo fmt --all --check
	cargo clippy --quiet $(CARGO_OPTIONS) --workspace --all-targets -- -D warnings

audit: $(DENY) ## check licences, sources and bans of the Rust dependencies (builds cargo-deny the first time)
	$(DENY) --locked check --hide-inclusion-graph licenses bans sources
	$(DENY) --locked --config deny.toml --manifest-path fuzz/Cargo.toml check --hide-inclusion-graph licenses bans sources

advisories: $(DENY) ## look the Rust dependencies up in the RustSec advisory database (needs github.com)
	$(DENY) check advisories
	$(DENY) --config deny.toml --manifest-path fuzz/Cargo.toml check advisories

reference: build ## write again what is made from the code: pages of commands, plan, Python and results, man page, Vega
	$(BIN)/python -m firstflight.cli.reference >docs/reference/cli.md
	$(BIN)/python -m firstflight.experiment.reference >docs/reference/plan.md
	$(BIN)/python -m firstflight.experiment.reference --schema >docs/reference/plan.schema.json
	$(BIN)/python scripts/api_reference.py >docs/reference/python.md
	$(BIN)/python -m firstflight.results.docs >docs/results.md
	$(BIN)/python -m firstflight.cli.reference --man >$(MAN)
	$(BIN)/python -m firstflight.report.html >$(VEGA)

docs: $(SITE)/.synced ## build the documentation as a site that needs no network: site/index.html
	$(SITE)/bin/python scripts/site_source.py target/site
	rm -rf site && $(SITE)/bin/zensical build --clean --strict
	if [ -f $(PLAYGROUND) ]; then $(PYTHON) scripts/build_playground.py --into site $(PLAYGROUND); fi
	$(SITE)/bin/python scripts/site_links.py site

playground: $(PLAYGROUND) ## write the playground, one file for any browser: target/playground/playground.html

dist: $(DIST)/.synced | rust ## build the source archive and the wheel into dist/; TARGETS= names other processors
	PATH="$(abspath $(DIST))/bin:$$PATH" $(DIST)/bin/python packaging/dist.py $(TARGETS)

dist-test: ## install the wheel of dist/ into an empty environment and use it; PYTHON= says with which Python
	$(PYTHON) packaging/try_wheel.py dist/*_$$(uname -m).whl

data: build ## write the profiles of recordings in ../shared/data and the studies' tables to dist/
	$(BIN)/python scripts/corpus.py ../shared/data dist/firstflight-corpus-$$($(BIN)/firstflight --version | cut -d' ' -f2).tar.xz

bench: build ## measure our own speed
	cargo bench --locked $(CRATES)

clean: ## remove everything that was built; results stay
	rm -rf target site dist $(VENV) python/firstflight/_bin python/firstflight/*.so .mypy_cache .ruff_cache .pytest_cache .hypothesis .cache

system: ## install the programs that tests drive, from the system's packages
	@missing=$$(for program in $(PROGRAMS); do command -v $$program >/dev/null || printf ' %s' $$program; done); \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends $$missing; \
	else \
	  echo "error: missing:$$missing" >&2; echo "hint: as root: apt-get install$$missing" >&2; exit 1; \
	fi

$(PLAYGROUND): $(WASM) scripts/build_playground.py $(wildcard playground/*) $(wildcard python/firstflight/pages/embedded/*.json)
	$(PYTHON) scripts/build_playground.py $(WASM) $@

$(WASM): $(CORE) $(wildcard crates/playground/Cargo.toml crates/playground/src/*.rs)
	@command -v $(WASM_CARGO) >/dev/null || { echo "error: no $(WASM_CARGO). hint: install Rust from https://rustup.rs" >&2; exit 1; }
	$(WASM_CARGO) build --profile wasm --target wasm32-wasip1 --target-dir target/wasm --locked -p firstflight-playground || \
	  { echo "hint: if the target is missing: rustup target add wasm32-wasip1 (docs/playground.md)" >&2; exit 1; }

$(LAB): $(RUST) | rust
	cargo build $(CARGO_OPTIONS) -p firstflight-lab -p firstflight-preload
	install -D -m 755 target/$(PROFILE)/firstflight-lab $@
	install -D -m 644 target/$(PROFILE)/libfirstflight_preload.so $(PRELOAD)

$(VENV)/.extension: $(VENV)/.synced $(CORE) $(MAN) pyproject.toml | rust
	PATH="$(dir $(abspath $(UV))):$$PATH" $(BIN)/maturin develop $(CARGO_OPTIONS) --quiet
	touch $@

$(VENV)/.synced: requirements.lock $(OWN_UV)
	$(UV) venv --quiet --no-project --allow-existing --python '>=3.11' $(VENV)
	@# Where Python may not write bytecode, as in a container, or a browser's driver, every start would compile.
	$(UV) pip sync --quiet --compile-bytecode --python $(BIN)/python --require-hashes requirements.lock
	touch $@

$(SITE)/.synced: requirements-docs.lock $(OWN_UV)
	$(UV) venv --quiet --no-project --allow-existing --python '>=3.11' $(SITE)
	$(UV) pip sync --quiet --python $(SITE)/bin/python --require-hashes requirements-docs.lock
	touch $@

$(DIST)/.synced: requirements-dist.lock $(OWN_UV)
	$(UV) venv --quiet --no-project --allow-existing --python '>=3.11' $(DIST)
	$(UV) pip sync --quiet --python $(DIST)/bin/python --require-hashes requirements-dist.lock
	touch $@

target/uv/bin/uv: requirements-uv.lock
	$(PYTHON) -m venv target/uv || { echo "hint: install python3-venv, or uv" >&2; exit 1; }
	target/uv/bin/pip install --quiet --require-hashes --requirement requirements-uv.lock
	touch $@

$(DENY): Makefile | rust
	cargo install --quiet --locked --version $(DENY_VERSION) --root target/deny --target-dir target/deny/build cargo-deny
	touch $@

rust:
	@scripts/rust_toolchain

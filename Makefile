# Two commands for a fresh machine: `make demo` and `make test`. `make help` lists the rest.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

MIXED := tests/captures/mixed
CARGO_TEST := $(shell cargo nextest --version >/dev/null 2>&1 && echo nextest run || echo test --tests --examples)

.PHONY: help demo test fmt lint unit doc generated bench instructions captures fuzz setup

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

demo: ## build the firewall and run it over a real capture: what passed, what was dropped and why
	@tools/setup build
	cargo build --locked --release --package pipec-cli
	cargo run --locked --release --quiet --package pipec-cli -- replay pipelines/firewall.pipe \
	    --in lan=$(MIXED)/lan.pcap --in wan=$(MIXED)/wan.pcap --summary

test: ## formatting, lints, all tests, instruction counts; what continuous integration runs
	@tools/setup build test
	@$(MAKE) fmt generated lint unit doc instructions

fmt: ## is everything formatted?
	cargo fmt --all --check

generated: ## are generated files what their scripts write?
	python3 tests/captures/odd.py --check

lint: ## clippy, warnings are errors
	cargo clippy --locked --workspace --all-targets -- -D warnings

unit: ## unit, snapshot and integration tests (by cargo-nextest where it is installed)
	cargo $(CARGO_TEST) --locked --workspace --no-fail-fast

doc: ## the examples in the documentation
	cargo test --locked --workspace --doc

bench: ## this dataplane beside others, into bench/results and the book (as root, on a quiet machine, half an hour)
	@tools/setup build bench
	cargo run --locked --release --quiet --package pipec-bench -- results

instructions: ## instructions a packet of the hot paths beside those stored, twice if need be (skipped without valgrind)
	@tools/setup build
	cargo run --locked --release --quiet --package pipec-bench -- instructions --check || \
	  cargo run --locked --release --quiet --package pipec-bench -- instructions --check

captures: ## record the captures of tests/captures afresh (as root)
	@tools/setup captures
	python3 tests/captures/record.py

fuzz: export RUSTC_BOOTSTRAP = 1
fuzz: ## fuzz every target for a minute (needs cargo-fuzz)
	cargo fuzz build
	for target in $$(cargo fuzz list); do \
	    mkdir -p fuzz/corpus/$$target && \
	    cargo fuzz run $$target fuzz/corpus/$$target pipelines pipelines/bad -- -max_total_time=60 -max_len=4000 -len_control=0 || exit; \
	done

setup: ## install what `make demo` and `make test` need, by apt
	@tools/setup build test

# Everything here sets up what it needs; see tools/setup.sh.
# `make up` mounts the stores, `make test` runs the tests, `make help` lists the rest.

SHELL := /bin/bash
BIN := .venv/bin
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help setup up down test lint types layers check bench soak clean

help: ## list the targets
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

setup: ## install what is missing and build .venv; quick when nothing changed
	@tools/setup.sh

up: setup ## start the daemon and mount: make up ARGS="--agent digest --actor ann"
	@$(BIN)/engramfs up $(ARGS)

down: setup ## unmount everything and stop the daemon
	@$(BIN)/engramfs down $(ARGS)

test: setup ## run the tests: make test ARGS="-k keeper"
	$(BIN)/python -m pytest -n auto -m "not soak and not bench" $(ARGS)

lint: setup ## ruff: rules and format
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup ## mypy, strict
	$(BIN)/mypy

layers: setup ## import-linter: each layer imports only from those below it
	$(BIN)/lint-imports

check: lint types layers test ## what .ci/run checks

bench: ## measure against bindfs and JuiceFS side by side, and print the ratios
	@tools/setup.sh bench
	$(BIN)/python -m pytest -m bench -s -q $(ARGS)

soak: setup ## the slow workloads
	$(BIN)/python -m pytest -m soak --timeout=0 $(ARGS)

clean: ## remove what was built, .venv included
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build dist
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

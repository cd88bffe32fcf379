# Every target does its own set-up on a fresh Debian machine: the virtual environment, the Python packages and,
# where they are needed, Prometheus and Alertmanager. A second run finds the stamp and starts at once.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
UV := .venvs/uv/bin/uv
# Frameworks that do not install together: one virtual environment for each set.
FRAMEWORKS := $(patsubst tests/frameworks/%/requirements.txt,%,$(wildcard tests/frameworks/*/requirements.txt))
FRAMEWORK_TESTS := $(FRAMEWORKS:%=test-%)

.PHONY: help demo test test-newer test-frameworks $(FRAMEWORK_TESTS) lint format generate picture preview bench servers redis terminal clean

help: ## Say what there is to make
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-15s %s\n", $$1, $$2 }' Makefile

demo: $(INSTALLED) servers ## Watch a stuck agent page somebody, on real servers
	@$(BIN)/turnwatch demo

test: $(INSTALLED) servers redis terminal ## Run every test, with coverage
	$(BIN)/pytest --numprocesses 3 --dist loadscope --no-loadscope-reorder --durations 25 --cov --cov-fail-under=90

# Every page's script is a process of its own: what the first has compiled, the others need not compile again.
test-frameworks: $(FRAMEWORK_TESTS) ## Run the tests with real agent frameworks, each set in an environment of its own

$(FRAMEWORK_TESTS): test-%: .venvs/%/.installed
	@echo "== $*"; \
	PYTHONDONTWRITEBYTECODE= FRAMEWORKS_ENVIRONMENT=$* .venvs/$*/bin/python -m pytest -o filterwarnings= -W ignore tests/frameworks/$*

NEWER_TESTS := $(addprefix tests/pack/test_,rules.py overrides.py recording_rules.py queries_on_prometheus.py)
test-newer: $(INSTALLED) servers ## Run the tests of rules and queries on the Prometheus of the next Debian release
	@if programs=$$(.ci/newer-prometheus build/newer-prometheus); then \
	PATH="$$programs:$$PATH" $(BIN)/pytest --numprocesses 2 --dist loadscope $(NEWER_TESTS); \
	else echo "SKIPPED: no newer Prometheus could be had, so the rules were tested on the installed one ONLY." >&2; fi

.venvs/%/.installed: tests/frameworks/%/requirements.txt pyproject.toml | $(UV)
	.ci/set-up .venvs/$* --editable '.[otel,serve]' -r $<
	@if [ -f tests/frameworks/$*/package.json ]; then \
	command -v npm >/dev/null || .ci/debian-install nodejs npm; \
	npm install --prefix tests/frameworks/$* --no-package-lock --no-audit --no-fund --silent; fi
	@touch $@

.venvs/vercel/.installed: tests/frameworks/vercel/package.json
.venvs/javascript/.installed: tests/frameworks/javascript/package.json

lint: $(INSTALLED) ## Check style, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(INSTALLED) ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

generate: $(INSTALLED) ## Make rules, dashboards and reference pages again from their sources
	$(BIN)/turnwatch pack render
	$(BIN)/python docs/generate.py

picture: $(INSTALLED) servers ## Record the pictures of the demo and of turnwatch top
	$(BIN)/turnwatch demo --svg docs/demo.svg
	$(BIN)/python docs/top_picture.py docs/top.svg

preview: $(INSTALLED) servers ## Draw the dashboards with Grafana's own panel components, into build/preview
	@if command -v npm >/dev/null; then \
	command -v chromium >/dev/null || .ci/debian-install chromium; \
	mkdir -p .venvs/preview && cp dashboards/preview/package.json .venvs/preview/; \
	npm install --prefix .venvs/preview --no-package-lock --no-audit --no-fund --silent; \
	$(BIN)/python dashboards/preview/draw.py .venvs/preview build/preview; \
	else echo "SKIPPED: npm is not here, so NO dashboard was drawn. Install Node.js and npm, then run make preview again." >&2; fi

bench: $(INSTALLED) servers ## Measure what watching costs
	@missed=; for benchmark in bench/*.py; do echo "== $$benchmark"; \
	$(BIN)/python "$$benchmark" || missed="$$missed $$benchmark"; done; \
	if [ -n "$$missed" ]; then echo "Failed, or past a bound that they print:$$missed" >&2; exit 1; fi

servers:
	@command -v promtool >/dev/null && command -v prometheus >/dev/null \
	&& { command -v alertmanager || command -v prometheus-alertmanager; } >/dev/null \
	|| .ci/debian-install prometheus prometheus-alertmanager

redis:
	@command -v redis-server >/dev/null || .ci/debian-install redis-server

# What turnwatch top is tested in. Without it those tests are skipped, and say so.
terminal:
	@command -v tmux >/dev/null || .ci/debian-install tmux \
	|| echo "tmux is not here: turnwatch top is not tested in a terminal." >&2

$(INSTALLED): pyproject.toml | $(UV)
	.ci/set-up $(VENV) --editable '.[dev]'
	@touch $@

$(UV):
	.ci/set-up .venvs/uv uv || echo "uv is not to be had: pip installs everything, which takes minutes." >&2

clean: ## Remove what was built
	rm -rf $(VENV) .venvs dist build .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis

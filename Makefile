# Every chore. `make help` lists them.
# One environment, .venv, made when first needed; a stamp per extra says what is installed in it.

PYTHON ?= python3
PY     := .venv/bin/python
SEEDS  ?= 100000
JOBS   ?= 2
SHELL  := /bin/sh
.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help install demo test soak lint format docs papers records simulate live-levels bench bench-smoke bench-tpch clean prerequisites

help: ## List these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

install: .venv/.installed-demo ## Install into .venv: then . .venv/bin/activate, and steadyview --help

demo: .venv/.installed-demo ## A small shop on PostgreSQL and SQLite, kept in four views for 40 seconds, then verified
	@$(PY) -m examples.demo

test: .venv/.installed-dev ## All tests (real servers, real Spark)
	@$(PY) -m pytest -q -n 2 --dist loadscope --no-loadscope-reorder --durations=15 $(ARGS)

soak: .venv/.installed-dev ## Long trials: sixty lives of 10-30 seconds with writers on, 25 views killed at every crash point, 60,000 histories of plans (hours)
	@STEADYVIEW_SOAK=1 STEADYVIEW_LIVES=60 STEADYVIEW_HISTORIES=3000 STEADYVIEW_TEXTS=4000 $(PY) -m pytest -q --timeout 7200 $(or $(ARGS),tests/processes tests/plans tests/simulation tests/system tests/crash/test_killed_stores.py tests/crash/test_four_policies.py)

lint: .venv/.installed-dev ## ruff, mypy --strict, import-linter for the staircase of rooms
	@.venv/bin/ruff check .
	@$(PY) -m mypy
	@PYTHONPATH=src .venv/bin/lint-imports

format: .venv/.installed-dev ## Let ruff sort imports and fix what it can
	@.venv/bin/ruff check --fix .

docs: .venv/.installed-dev ## Check the docs: links, commands, toml and SQL snippets, doctests
	@$(PY) -m pytest -q tests/test_docs.py

papers: .venv/.installed-dev ## The papers' figures and tables, measured (under 5 minutes); writes docs/results/papers.md
	@$(PY) -m examples.papers

records: .venv/.installed-dev ## Records kept by view managers: levels by view, technique and fault; Figures 2 to 8 (ten minutes); writes docs/results/records.md
	@$(PY) -m examples.records $(ARGS)

simulate: .venv/.installed-dev ## Every algorithm in every scenario over SEEDS histories each, on JOBS processes
	@.venv/bin/steadyview simulate --algorithm all --seeds 1..$(SEEDS) --jobs $(JOBS)

live-levels: .venv/.installed-dev ## Every algorithm on live databases under writers, judged (under ten minutes); writes docs/results/live-levels.md
	@$(PY) -m examples.live_levels $(ARGS)

bench: .venv/.installed-bench ## The speed tables (three quarters of an hour); writes docs/results/
	@$(PY) -m benchmarks

bench-smoke: .venv/.installed-bench ## The same on very little data (a few minutes)
	@$(PY) -m benchmarks --smoke

bench-tpch: .venv/.installed-bench ## TPC-H's 22 queries over three databases (20 minutes); writes docs/results/tpch-queries.md
	@$(PY) -m benchmarks.tpch_queries $(ARGS)

clean: ## Remove the environment, caches and the demo's project
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis build dist demo-project spark-warehouse
	find src tests examples benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# Looked at before every target that runs something: a missing Java is told before anything is installed.
prerequisites:
	@sh scripts/java_check.sh
	@sh scripts/python_check.sh "$(PYTHON)"

.venv/.installed-%: pyproject.toml | prerequisites
	@sh scripts/install.sh "$(PYTHON)" "$*"
	@touch "$@"

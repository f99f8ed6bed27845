# Every target sets up what it needs: on a fresh clone `make demo` or `make test` is enough.
# Another interpreter: make PYTHON=python3.12 install

PYTHON ?= python3
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
CHROMIUM ?= $(firstword $(foreach name,chromium chromium-browser google-chrome,$(shell command -v $(name))))
WORKERS := $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
SOURCES := $(shell find src -name '*.py')
PICTURES := $(patsubst examples/%.py,build/gallery/%.png,$(wildcard examples/*.py))

.DEFAULT_GOAL := help
.PHONY: help install browser demo test test-slow lint format docs dist bench bench-compare bench-page studies clean

help:  ## Show this list
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' Makefile

install: $(STAMP)  ## Make .venv and install the package with pinned dependencies

# The stamp is written last, so an interrupted installation is taken up again.
$(STAMP): pyproject.toml constraints.txt
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || { \
	  command -v $(PYTHON) >/dev/null 2>&1 || { \
	    echo "error: $(PYTHON) not found: install Python 3.11 or later, or name one, as in make PYTHON=python3.12 install" >&2; \
	    exit 1; }; \
	  $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "error: Bellweight needs Python 3.11 or later, but $(PYTHON) is $$($(PYTHON) -V 2>&1): name a newer one, as in make PYTHON=python3.12 install" >&2; \
	    exit 1; }; \
	  $(PYTHON) -m venv $(VENV); }
	@echo "Installing Bellweight and its pinned dependencies into $(VENV) (a minute or two the first time) ..."
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-compile -c constraints.txt -e ".[dev]"
	@$(BIN)/python -W ignore -m compileall -qq -j 0 $(VENV)/lib src || true  # on all cores; pip would use one
	@touch $@

demo: $(STAMP)  ## Solve a queue and prove it, then a network, and write a page that shows it
	@$(BIN)/bellweight demo

# Reports are tested in a real browser; a machine without one gets it, or is told how.
browser:  ## Find Chromium for the tests, or install it (another one: make CHROMIUM=/path test)
	@test -n "$(CHROMIUM)" || { \
	  echo "Installing Chromium for the tests of the reports ..."; \
	  run=""; test "$$(id -u)" = 0 || run=sudo; \
	  $$run apt-get update -qq && $$run apt-get install -qq -y chromium >/dev/null; } || { \
	  echo "error: the tests need Chromium: install it, or name one, as in make CHROMIUM=/path/to/chrome test" >&2; \
	  exit 1; }

# One worker more than cores, because some tests wait for a browser or another process; the tests of a
# file share what they prepare, so they stay together, in the order of tests/conftest.py. Every core
# has a worker, so that threads of linear algebra besides would wait for each other. The workers and
# the processes that tests start share what Python compiles, also where a shell forbids to keep it.
test: $(STAMP) browser  ## Run the tests, without the slow ones (ARGS="-k name" to pick some)
	CHROMIUM="$(CHROMIUM)" OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= \
	  $(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(ARGS)

test-slow: $(STAMP) browser  ## Run the slow tests, as before a release
	CHROMIUM="$(CHROMIUM)" $(BIN)/pytest -m slow --timeout=3600 $(ARGS)

lint: $(STAMP)  ## Check style, formatting and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

format: $(STAMP)  ## Fix what can be fixed automatically, and format
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

docs: $(STAMP) $(PICTURES) build/gallery/tutorial.txt  ## Build the documentation into site/, which opens without a server
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --clean
	@echo "open site/index.html"

# What an example prints and draws goes into the gallery; it runs again when it or the code changes.
build/gallery/%.png: examples/%.py $(SOURCES) | $(STAMP)
	@mkdir -p build/gallery
	@echo "running $<"
	@cd build/gallery && ../../$(BIN)/python ../../$< > $*.txt

# The tutorial draws its own pictures.
build/gallery/tutorial.txt: docs/tutorial.md $(SOURCES) | $(STAMP)
	@mkdir -p build/gallery
	@echo "running $<"
	@cd build/gallery && ../../$(BIN)/python ../../mkdocs_hooks.py ../../docs/tutorial.md > tutorial.new
	@mv build/gallery/tutorial.new $@

dist: $(STAMP)  ## Build the wheel and the source distribution into dist/
	@rm -rf build  # what an earlier version left there would be packed too
	@$(BIN)/python -m build --outdir dist .

bench: $(STAMP)  ## Measure speed as ratios against a peer in the same run
	$(BIN)/python benchmarks/run.py $(ARGS)

bench-compare: $(STAMP)  ## Measure again and fail where a figure is 20 % worse than in BASE=file.json
	@test -n "$(BASE)" || { echo "error: name the earlier figures, as in make bench-compare BASE=before.json (written by make bench ARGS='--json before.json')" >&2; exit 1; }
	$(BIN)/python benchmarks/run.py --base $(BASE) $(ARGS)

bench-page: $(STAMP)  ## Measure and write docs/benchmarks.md
	$(BIN)/python benchmarks/run.py --page docs/benchmarks.md $(ARGS) || true

studies: $(STAMP)  ## Run the study beyond the paper, an hour or so (ARGS="--quick": minutes)
	$(BIN)/python -m studies.beyond $(ARGS)

clean:  ## Remove caches and build products; .venv stays
	rm -rf build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks src/*.egg-info
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

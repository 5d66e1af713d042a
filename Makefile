PYTHON ?= python3
PROFILE ?= standard
JOBS ?= 2
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check

# Which Python it is, whether too old, and where: the environment belongs to these.
ASK := import os, sys; print("%s%d.%d.%d%s %s %s" % ( \
	("old " if sys.version_info < (3, 11) else "",) + tuple(sys.version_info[:3]) \
	+ (getattr(sys, "abiflags", ""), getattr(sys, "base_prefix", ""), os.getcwd())))
ASKED := $(shell $(PYTHON) -c '$(ASK)' 2>/dev/null)

.NOTPARALLEL:
.PHONY: book quick full confirm check test lint pytest slow mutants lock times clean

# Profile and number of chapters side by side.
define BOOK
	$(BIN)/press --profile $(1) --jobs $(2)
	PROFILE=$(1) $(BIN)/jupyter-book build . --all -n -W --keep-going
endef

book: $(READY)
	$(call BOOK,$(PROFILE),$(JOBS))

quick: $(READY)
	$(call BOOK,quick,$(JOBS))

full: $(READY)
	$(call BOOK,full,1)

# Whether the records still hold: the quick book beside what it gave when they were made.
confirm: $(READY)
	$(BIN)/press --confirm --jobs $(JOBS)

# The pages that were built, in Chromium, if that and its chromedriver are on PATH.
check: $(READY)
	$(BIN)/pytest -m browser tests/book/test_pages.py
	$(BIN)/python tests/house/sizes.py

test: lint pytest

lint: $(READY)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

pytest: $(READY)
	$(BIN)/pytest -n logical --maxprocesses 8 --dist loadfile --no-loadscope-reorder

# What takes seconds: real data at size, training, the compilation of other libraries.
slow: $(READY)
	$(BIN)/pytest -m slow -n logical --maxprocesses 8 --dist loadfile --no-loadscope-reorder

# Small wrongs that the tests have to notice.
mutants: $(READY)
	$(BIN)/python tests/house/mutants.py

# One set of versions for every Python, so that readers see the same numbers; without the
# extra models, which is a gigabyte that nothing here runs.
lock: $(READY)
	$(PIP) install uv
	$(BIN)/uv pip compile --universal --python-version 3.11 \
		--extra text --extra mesh --extra neighbors --extra test \
		--fork-strategy fewest --quiet --output-file requirements.lock \
		pyproject.toml book/pyproject.toml

# How long all this takes, for the colophon; on a machine with nothing else to do.
times: $(READY)
	$(BIN)/python benchmarks/times.py

# executed/ stays: it is expensive, and the press knows what in it is out of date.
clean:
	rm -rf _build build *.egg-info .import_linter_cache .mypy_cache .pytest_cache .ruff_cache .hypothesis

# An environment that was not finished, or made by another Python, is made anew.
ifneq ($(shell cat $(READY) 2>/dev/null),$(ASKED))
.PHONY: $(READY)
ANEW := $(if $(wildcard $(VENV)/pyvenv.cfg),--clear) $(VENV)
endif

$(READY): requirements.lock pyproject.toml book/pyproject.toml
	$(if $(filter-out old,$(firstword $(ASKED))),,$(error simlib needs Python 3.11 or \
		later, and $(PYTHON) $(if $(ASKED),is $(word 2,$(ASKED)),does not start). \
		Name another one: make PYTHON=python3.12 $(MAKECMDGOALS)))
	rm -f $@
	$(if $(ANEW),$(PYTHON) -m venv $(ANEW))
	$(PIP) install --requirement requirements.lock
	$(PIP) install --no-deps --no-build-isolation --editable . --editable ./book
	@# Otherwise the first chapter with a figure writes about fonts, and fails; here, since
	@# another environment's list of fonts may be wrong for this one.
	mkdir -p $(VENV)/matplotlib
	MPLCONFIGDIR=$(VENV)/matplotlib $(BIN)/python -c "import matplotlib.font_manager"
	@$(PYTHON) -c '$(ASK)' > $@

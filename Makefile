PYTHON ?= python3
PROFILE ?= standard
BIN := .venv/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check

.PHONY: book quick full test mutants lock clean

book: .venv/ready
	$(BIN)/press --profile $(PROFILE)
	PROFILE=$(PROFILE) $(BIN)/jupyter-book build . --all -n -W --keep-going

quick:
	$(MAKE) book PROFILE=quick

full:
	$(MAKE) book PROFILE=full

test: .venv/ready
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/pytest -n logical --maxprocesses 8 --dist loadfile

# Small wrongs that the tests have to notice.
mutants: .venv/ready
	$(BIN)/python tests/mutants.py

# One set of versions for every Python, so that readers see the same numbers.
lock: .venv/ready
	$(PIP) install uv
	$(BIN)/uv pip compile --universal --python-version 3.11 --all-extras \
		--fork-strategy fewest --quiet --output-file requirements.lock pyproject.toml

# executed/ stays: it is expensive, and the press knows what in it is out of date.
clean:
	rm -rf _build build *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis

.venv/ready: requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv
	$(PIP) install --requirement requirements.lock
	$(PIP) install --no-deps --no-build-isolation --editable .
	@# Otherwise the first chapter with a figure writes about fonts, and fails.
	$(BIN)/python -c "import matplotlib.font_manager"
	touch $@

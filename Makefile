# Two commands are all a newcomer needs: `make run` and `make check`. Both set everything up.
.PHONY: run check check-fast fix test bench strain lock setup
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
STRAINS := benchmarks/storm.py benchmarks/faults.py benchmarks/determinism.py

run: $(STAMP)            ## set up, then the main job on SQLite and a local Ray cluster
	$(BIN)/codesign study run quickstart

check: $(STAMP)          ## set up, then everything CI runs but the shipped spaces and the case table
	$(BIN)/ruff check . && $(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo
	$(BIN)/mypy
	$(BIN)/pytest -q -n 2 --dist loadgroup

check-fast: $(STAMP)     ## the part under a minute
	$(BIN)/ruff check . && $(BIN)/lint-imports --no-logo
	$(BIN)/pytest -q -n 2 --dist loadgroup -m "not slow and not ray"

fix: $(STAMP)            ## let ruff mend what it can
	$(BIN)/ruff check --fix . && $(BIN)/ruff format .

test: $(STAMP)           ## make test ARGS="-k buffer"
	$(BIN)/pytest $(ARGS)

bench: $(STAMP)          ## speed as ratios and CPU-seconds, by hand
	for file in $(filter-out $(STRAINS),$(wildcard benchmarks/*.py)); do \
	  echo "== $$file"; $(BIN)/python $$file || exit 1; done

strain: $(STAMP)         ## many writers, kills, full disks, at full length: half an hour, by hand
	$(BIN)/python benchmarks/storm.py --backend sqlite && $(BIN)/python benchmarks/storm.py --backend postgres
	$(BIN)/python benchmarks/faults.py && $(BIN)/python benchmarks/determinism.py

lock: $(STAMP)           ## resolve pyproject.toml again into the one lock file
	$(BIN)/python -m pip install -q uv
	$(BIN)/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes \
	  --no-emit-index-url --no-header -q -o requirements.lock

setup: $(STAMP)

$(STAMP): requirements.lock pyproject.toml
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'codesign needs Python 3.11 or newer')"
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --require-hashes -r requirements.lock
	$(BIN)/python -m pip install -q --no-deps --no-build-isolation -e .
	touch $(STAMP)

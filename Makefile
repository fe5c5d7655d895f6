# make demo · make test · make check · make bench · make fuzz · make results    (each makes its own .venv first)
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test slow check bench fuzz results lock clean

demo: $(VENV)/ready
	$(BIN)/seqmix simulate --preset demo --data gazette --out runs/demo/nte --set augment.variant=none
	$(BIN)/seqmix simulate --preset demo --data gazette --out runs/demo/nte+sub
	$(BIN)/seqmix report runs/demo/nte runs/demo/nte+sub --out runs/demo/report.html

test: $(VENV)/ready
	$(BIN)/pytest

slow: $(VENV)/ready
	$(BIN)/pytest -m slow

check: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/ready
	$(BIN)/python bench/train.py --sizes 700
	$(BIN)/python bench/predict.py --sizes 700 3453

# A short one; python -m fuzz --help says how to make it long.
fuzz: $(VENV)/ready
	$(BIN)/python -m fuzz --runs 20000
	$(BIN)/python bench/http_schema.py --requests 500

# Tables and figures of docs/results.md from results/*.csv.
results: $(VENV)/ready
	$(BIN)/python scripts/results.py

$(VENV)/ready: requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

# After changing dependencies in pyproject.toml: resolve anew, then write down what was chosen.
lock:
	rm -rf $(VENV)/lock && $(PYTHON) -m venv $(VENV)/lock
	$(VENV)/lock/bin/pip install --quiet torch==2.13.0 hatchling editables
	$(VENV)/lock/bin/pip install --quiet ".[dev,spacy,hf,gguf,plots,track,serve,scale]"
	$(VENV)/lock/bin/pip freeze --exclude seqmix | sed 's/^\(torch==[0-9.]*\)+cpu$$/\1/' > requirements.lock
	rm -rf $(VENV)/lock

clean:
	rm -rf $(VENV) runs .pytest_cache .mypy_cache .ruff_cache .hypothesis

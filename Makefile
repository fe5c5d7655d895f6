# make install · make demo · make test · make test-ci · make check · make docs · make faults · make fuzz · make bench · make mutation · make results · make audit · make wheel    (each makes its own .venv first)
# The first Python from 3.11 on that there is; make PYTHON=… takes another.
RECENT := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(firstword $(foreach one,python3.11 python3.12 python3.13 python3.14 python3,$(shell $(one) -c '$(RECENT)' 2>/dev/null && echo $(one))))
VENV := .venv
BIN := $(VENV)/bin

.PHONY: install demo docs test test-ci slow faults faults-kills faults-disk fuzz check bench mutation results audit wheel lock clean

# What the commands need, and no more; make test adds what the tests need.
install: $(VENV)/core

demo: $(VENV)/core
	$(BIN)/python scripts/demo.py

test: $(VENV)/ready
	$(BIN)/pytest -n 2 --dist worksteal

# The tests that a push should pass and that need not run at each save: real trainings, the whole README.
test-ci: $(VENV)/ready
	$(BIN)/pytest -n 2 -m ci

slow: $(VENV)/ready
	$(BIN)/pytest -m slow

# Kills, power cuts, full disks, damaged files, dying workers; KILLS=500 is the long form. `make -j2 -O faults` does both halves at once.
KILLS ?= 70
faults: faults-kills faults-disk

faults-kills: $(VENV)/ready
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.faults.kills --kills $(KILLS)
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.faults.kills --kills 60 --only simulate --plant "no fsync"
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.faults.kills --kills 60 --only simulate --plant "no folder fsync"

faults-disk: $(VENV)/ready
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.faults.trouble
	$(BIN)/pytest -m faults tests/faults

check: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The quick set, on quiet cores; each prints its table and writes its rows into results/bench.csv. On a GPU: bash bench/gpu.sh
bench: $(VENV)/ready
	$(BIN)/python bench/train.py --sizes 700 --epochs 3
	$(BIN)/python bench/predict.py --sizes 700
	$(BIN)/python bench/score.py --sizes 1000
	$(BIN)/python bench/loop.py --pool 1000
	$(BIN)/python bench/faster_cpu.py --size 500
	$(BIN)/python bench/generate.py --starter --variants sub label
	$(BIN)/python bench/generate_many.py --labeled 200 700 --asked 40
	$(BIN)/python bench/pool.py --sizes 10000

# A short one; python -m fuzz --help says how to make it long.
fuzz: $(VENV)/ready
	$(BIN)/python -m fuzz --runs 20000
	$(BIN)/python bench/http_schema.py --requests 500
	$(BIN)/python bench/serve_predict.py --seconds 20 --rounds 2

# Which share of small mistakes, planted one at a time, the tests notice; half an hour on a quiet core.
mutation: $(VENV)/ready
	$(BIN)/pip install --quiet cosmic-ray==8.7.0 coverage==7.17.2
	$(BIN)/python scripts/mutation.py --sample 10 --out mutants.jsonl

# The site, in site/: open site/index.html.
docs: $(VENV)/ready
	$(BIN)/python scripts/build_site.py

# The tables under results/tables and the figures of docs/results.md, from results/*.csv.
results: $(VENV)/ready
	$(BIN)/python scripts/results.py

# What we depend on against the weaknesses we know of, and the bill of materials.
audit: $(VENV)/ready
	$(BIN)/python scripts/audit.py
	$(BIN)/python scripts/sbom.py sbom.json

# Every file is held against its hash. A build of torch for the CPU comes first where pip knows one; that of the index needs CUDA's packages.
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --no-deps
$(VENV)/core: requirements-core.lock requirements-cpu.lock requirements-cuda.lock pyproject.toml
	@$(or $(PYTHON),false) -c '$(RECENT)' || { echo 'seqmix needs Python 3.11 or later with its module venv: install python3 and python3-venv (python3.11 or later), or name yours: make PYTHON=/path/to/python3' >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) -r requirements-cpu.lock 2>/dev/null || true
	$(PIP) -r requirements-core.lock
	$(BIN)/pip check >/dev/null || $(PIP) -r requirements-cuda.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

$(VENV)/ready: $(VENV)/core requirements.lock
	$(PIP) -r requirements.lock
	touch $@

# sdist and wheel in dist/; the same files give the same bytes.
wheel: $(VENV)/ready
	rm -rf dist
	$(BIN)/python -m hatchling build

# After changing dependencies in pyproject.toml: resolve anew, then write down what was chosen and the hashes of its files.
lock:
	rm -rf $(VENV)/lock && $(PYTHON) -m venv $(VENV)/lock
	$(VENV)/lock/bin/pip install --quiet --disable-pip-version-check packaging
	$(VENV)/lock/bin/python scripts/lock.py
	rm -rf $(VENV)/lock

clean:
	rm -rf $(VENV) build runs site .pytest_cache .mypy_cache .ruff_cache .hypothesis

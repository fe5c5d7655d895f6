#!/usr/bin/env bash
# The benchmarks on one GPU: `bash bench/gpu.sh [FOLDER THAT HOLDS conll03]`. Absolute times mean something only when nothing else runs there.
set -euo pipefail
cd "$(dirname "$0")/.."
data=${1:-../shared/data}
python3 bench/score.py --data "$data/conll03" --sizes 3453 14041
python3 bench/predict.py --data "$data/conll03" --sizes 3453
python3 bench/train.py --data "$data/conll03" --sizes 700 3453
python3 bench/generate_many.py --data "$data/conll03" --labeled 200 2000 20000 --asked 500
python3 bench/simulate.py --data "$data"

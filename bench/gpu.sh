#!/usr/bin/env bash
# The benchmarks on one GPU: `bash bench/gpu.sh [FOLDER WITH CONLL-03]`. Absolute times mean something only when nothing else runs there.
set -euo pipefail
cd "$(dirname "$0")/.."
data=${1:-../shared/data/conll03}
runs=$(mktemp -d)
python3 bench/score.py --data "$data" --sizes 3453 14041
python3 bench/predict.py --data "$data" --sizes 3453
python3 bench/train.py --data "$data" --sizes 700 3453
for try in first second; do # the first also fills the caches of the disk and the driver
  echo "simulate --preset conll03, alone, $try run:"
  time python3 -m seqmix simulate --preset conll03 --data "$data" --out "$runs/$try"
done

"""Write the tables under results/tables and the figures of docs/results.md from results/*.csv.

    python scripts/results.py

Nothing is chosen or worded here: docs/results.md is written by hand and quotes these tables.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from results_data import read_tables
from results_figures import write_figures
from results_tables import write_tables

ROOT = Path(__file__).resolve().parents[1]

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=Path, default=ROOT / "results" / "tables")
    parser.add_argument("--figures", type=Path, default=ROOT / "docs" / "img")
    arguments = parser.parse_args()
    runs = read_tables(ROOT / "results")
    write_tables(runs, arguments.tables)
    write_figures(runs, arguments.figures)

"""`python -m seqmix`."""

import sys

try:
    from seqmix.app.cli import entry
except ModuleNotFoundError as error:
    if (error.name or "").startswith("seqmix"):
        raise
    sys.exit(
        f"seqmix needs the package {error.name}, which this Python does not have: "
        "in a clone, type make install and then source .venv/bin/activate"
    )

entry()

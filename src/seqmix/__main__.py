"""`python -m seqmix`."""

from seqmix.app.cli import entry

entry()

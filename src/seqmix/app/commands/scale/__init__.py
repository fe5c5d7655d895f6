"""`seqmix rank` and `sweep`."""

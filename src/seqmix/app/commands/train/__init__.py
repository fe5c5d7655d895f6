"""`seqmix train`, `evaluate`, `predict` and `adapt`."""

"""`seqmix convert` and `info`."""

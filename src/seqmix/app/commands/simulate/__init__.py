"""`seqmix augment`, `simulate` and `report`."""

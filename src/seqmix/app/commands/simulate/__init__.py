"""`seqmix augment`, `simulate`, `status` and `report`."""

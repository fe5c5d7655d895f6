"""`seqmix init`, `annotate`, `export`, `labelstudio` and `project`."""

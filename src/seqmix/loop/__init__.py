"""Algorithm 1: ask, annotate, augment, train, evaluate; the same code for a gold file and for people."""

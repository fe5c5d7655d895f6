"""Models from other libraries as taggers: they suggest, rank and predict, and are never trained."""

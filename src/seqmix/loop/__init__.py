"""Active learning: pool, learner, and runs that resume after any kill."""

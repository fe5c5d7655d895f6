"""Arms × grid × seeds of one experiment, run side by side into one table."""

"""People in the loop: a project, its store, its page, its trainer, and estimates of progress."""

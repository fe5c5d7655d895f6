"""People in the loop: a project with its store, who is asked what next, and what the answers say."""

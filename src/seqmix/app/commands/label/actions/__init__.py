"""What `seqmix project FOLDER ACTION` does: a file for each group of actions, and their table."""

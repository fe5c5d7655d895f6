"""The process that trains in the background and ranks the pool."""

"""The tags of a project over time."""

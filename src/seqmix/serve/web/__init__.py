"""The annotation server: the page and the JSON interface behind it."""

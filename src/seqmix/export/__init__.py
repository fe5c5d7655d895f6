"""Trained taggers for other libraries."""

"""Answers given in one go: their cause, their undo, and what was accepted in bulk."""

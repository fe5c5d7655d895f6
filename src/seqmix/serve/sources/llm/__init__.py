"""A language model behind an OpenAI-compatible endpoint as a source of suggestions."""

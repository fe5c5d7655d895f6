"""The prediction server: a tagger behind HTTP, for programs."""

"""What people import from seqmix: a tagger of text, a project, and tables in and out."""

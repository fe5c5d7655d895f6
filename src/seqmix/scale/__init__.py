"""Pools on disk, and work on millions of sentences in processes or on a Ray cluster."""

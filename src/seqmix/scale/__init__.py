"""What outgrows one process: pools on disk, scores of millions of sentences, and work spread over processes or a Ray cluster."""

"""The training loop, the order of batches, CUDA graphs, memory and determinism."""

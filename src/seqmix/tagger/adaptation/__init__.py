"""Masked-LM training of an encoder on unlabeled text."""

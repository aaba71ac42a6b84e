"""Runs of other frameworks, PyTorch and JAX, written down as traces, and their updates computed again."""

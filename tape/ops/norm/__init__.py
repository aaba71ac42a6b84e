"""Normalisation: ops, their general form, kernels, and the reference."""

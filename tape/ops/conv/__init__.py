"""Convolutions and their adjoints: ops, sizes, lowering, kernels, and the reference."""

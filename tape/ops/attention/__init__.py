"""Attention: its ops, their kernels, and the reference."""

"""Losses, with their kernels and references."""

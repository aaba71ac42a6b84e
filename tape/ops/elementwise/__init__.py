"""Ops that compute each element from the elements at its position, with their kernels."""

"""Kernels that everything needs: copies, sums of two arrays, the search for non-finite values."""

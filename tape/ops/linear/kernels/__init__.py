"""The kernels of matrix products and of triangular systems."""

"""The kernels of reductions other than sums, and of running ones."""

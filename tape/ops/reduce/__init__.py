"""Ops along axes: sums, extremes, products, moments, softmax, with their kernels."""

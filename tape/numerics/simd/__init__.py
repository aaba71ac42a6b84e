"""Code that kernels are built of: vectors, lanes, strides, sums and extremes along them."""

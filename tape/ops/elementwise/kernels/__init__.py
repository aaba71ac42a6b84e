"""The kernels of functions of elements, a file for each kind."""

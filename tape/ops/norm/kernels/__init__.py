"""The kernels of normalisations and their gradients."""

"""Random draws and dropout, with their kernels."""

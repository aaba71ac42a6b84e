"""Planes read at places that a grid names, and the grids of affine maps."""

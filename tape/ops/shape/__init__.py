"""Ops about where elements stand: reshaping, slicing, joining, gathering and scattering, with their kernels."""

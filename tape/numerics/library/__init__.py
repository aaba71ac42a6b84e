"""Kernels as object code for CPUs that are elsewhere, with the bits that they have here."""

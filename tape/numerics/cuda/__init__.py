"""Kernels for CUDA devices with the bits of the CPU's: sources, their compilation, what machine code may hold."""

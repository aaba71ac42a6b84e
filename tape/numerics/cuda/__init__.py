"""Code for NVIDIA GPUs, with the CPU's bits: its kernels translated by LLVM, and those that are written for tiles."""

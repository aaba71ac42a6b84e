"""Code for NVIDIA GPUs: the CPU's kernels translated by LLVM, and those that are written for tiles."""

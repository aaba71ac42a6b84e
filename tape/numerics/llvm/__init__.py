"""Kernels as text of LLVM, before any machine is known, and the processes that make code for others of it."""

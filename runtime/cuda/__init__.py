"""Plans on an NVIDIA GPU: its driver, the memory on both sides, and a step as one CUDA graph."""

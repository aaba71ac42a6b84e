"""Numerics: kernels whose results are a pure function of the bits of their inputs."""

NUMERICS = 3
"""Version of the bits: a change of any result of any kernel raises it, and every trace names it."""

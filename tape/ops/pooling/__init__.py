"""Pools and upsampling: ops, rules for their windows, kernels, and references."""

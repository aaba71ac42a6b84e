"""Derivatives of functions: grad, vjp, jvp and their like, and the check of gradients."""

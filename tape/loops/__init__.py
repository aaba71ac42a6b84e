"""Loops that are one call on a tape: their bodies, how they run, and their gradients."""

"""Ranks over MPI: how they begin, exchange bytes, and end together."""

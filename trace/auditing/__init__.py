"""Runs checked by sample: units drawn so that nobody can choose them, computed again, and certified."""

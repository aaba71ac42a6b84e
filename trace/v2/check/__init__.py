"""Validation and comparison of traces of version 2."""

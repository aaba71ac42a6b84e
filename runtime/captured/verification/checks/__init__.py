"""The checks of a captured step, one a file."""

"""Reading traces of version 2, whole, unfinished or damaged."""

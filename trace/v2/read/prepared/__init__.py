"""STEPs read in prepared calls."""

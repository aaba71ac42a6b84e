"""Functions of numbers with known bits: elementary functions, random words, exact results."""

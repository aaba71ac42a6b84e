"""Elements taken at indices that are values, and added at them."""

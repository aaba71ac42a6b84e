"""Steps recorded in prepared calls."""

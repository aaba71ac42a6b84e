"""What a run is, what is kept of it, and what one of its steps has made."""

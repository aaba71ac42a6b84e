"""One fit: its steps, how many are one launch, what is recorded, and what is looked at."""

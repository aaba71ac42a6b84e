"""A page that shows recorded runs: one HTML file, which needs nothing else."""

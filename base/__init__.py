"""What all wings stand on: the system, files, kinds of arrays, and what trainer and trace say to each other."""

"""Two runs held against each other: where they part first, why, and by how much."""

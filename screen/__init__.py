"""What people look at, in a terminal, in a notebook and as plots."""

"""Plans as libraries of C: an image without addresses, the entry that runs it, the header, the files."""

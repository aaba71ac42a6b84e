"""Writing traces of version 2: recording, resuming, rewriting."""

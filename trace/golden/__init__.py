"""Golden traces: a run that a test repeats, held against the trace of it that the project keeps."""

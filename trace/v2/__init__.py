"""Version 2 of the trace format: any model, any optimizer (`docs/trace_format.md`)."""

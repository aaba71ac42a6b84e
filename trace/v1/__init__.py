"""Version 1 of the DGRR trace: the scalar linear model, 64 bytes of header and 72 bytes a step.

The format is described byte for byte in docs/trace_format_v1.md. Nothing is imported here, so that a look at
one part (the layout, say) does not load numba.
"""

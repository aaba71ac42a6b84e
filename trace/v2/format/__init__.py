"""The format of version 2: constants, layouts, frames, digests, limits."""

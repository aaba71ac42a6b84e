"""Kernel calls that are prepared once, over places that stay, and then made in one launch."""

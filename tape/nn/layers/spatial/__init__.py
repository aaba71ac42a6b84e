"""Layers that slide over spatial axes, or resize them."""

"""Convolutions and pools of images, with two axes in their types."""

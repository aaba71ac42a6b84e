"""Loops as ops."""

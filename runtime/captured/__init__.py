"""Captured steps: their plans, their profile, their verification."""

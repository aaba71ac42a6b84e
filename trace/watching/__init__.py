"""Watchpoints: the first step of a recorded run at which a condition holds."""

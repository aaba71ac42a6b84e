"""The formulas of rules, and those that your own rules may call.

These files import little: of what they import, the names of compiled code are made.
"""

from .formulas import correction, mixed, root, shrunk, slope, whole_power

__all__ = ["correction", "mixed", "root", "shrunk", "slope", "whole_power"]

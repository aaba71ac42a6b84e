"""The formulas of rules, and those that rules of one's own may call.

These files import little: of what they import, the names of compiled code are made.
"""

from .formulas import correction, mixed, power, root, shrunk, slope

__all__ = ["correction", "mixed", "power", "root", "shrunk", "slope"]

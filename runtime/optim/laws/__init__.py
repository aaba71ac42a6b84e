"""The formulas of rules. These files import little: of what they import, the names of compiled code are made."""

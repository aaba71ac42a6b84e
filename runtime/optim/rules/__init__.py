"""What a rule is: its fields, its state and its step; rules of formulas and of ops, and the names that traces know."""

"""The page of two runs that part: their ops side by side, at the first step that differs."""

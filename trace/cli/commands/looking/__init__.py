"""Commands that show what is recorded, or hand it to other programs."""

"""What machines lack, by arithmetic that all have, with the same bits."""

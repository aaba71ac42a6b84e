"""What a trainer calls between its steps."""

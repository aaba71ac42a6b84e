"""What an op must say of itself: its record, signature, derivatives, samples, lowering."""

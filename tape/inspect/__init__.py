"""Looking at tapes and gradients: comparison, drawing, explanation, summary."""

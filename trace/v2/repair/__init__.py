"""What is made of a trace: one of what is whole of a damaged one, one cut back, one run of two halves."""

"""What elementary functions and sums give, to the last bit: what kernels are held to."""

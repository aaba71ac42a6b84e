"""Matrix products and what is made of them, with their kernels."""

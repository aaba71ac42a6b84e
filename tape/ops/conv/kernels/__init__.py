"""The kernels of convolutions: plans, words, tiles, and the loops over them."""

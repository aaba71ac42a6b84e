"""Commands that train, or write another trace; and the folder of compiled kernels."""

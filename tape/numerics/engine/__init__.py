"""How kernels are made, kept, called and spread over threads."""

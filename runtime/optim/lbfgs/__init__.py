"""L-BFGS: steps along a direction that remembers how the gradient has changed, which evaluate the loss repeatedly."""

"""One training step: a batch, the loss, its gradients, the update, the state."""

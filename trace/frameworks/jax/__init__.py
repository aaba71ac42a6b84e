"""Programs of JAX: their steps, the ops of one, and arrays on several devices, written down."""

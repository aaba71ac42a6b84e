"""Values without a tape: element types, shapes, tensors, and how they are compared and shown."""

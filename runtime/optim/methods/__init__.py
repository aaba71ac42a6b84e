"""The optimizers, each with its law: a file for each, and those that one kernel does."""

"""The layers, a file a family."""

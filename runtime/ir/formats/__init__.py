"""The graph of a step as text, JSON and a drawing."""

"""Layers of sequences: recurrent ones, attention, and what tells it positions."""

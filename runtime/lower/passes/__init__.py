"""Passes over the program of a step: each one leaves its bits as they are."""

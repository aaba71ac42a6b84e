"""Runs of several processes, a trace for each: folders held against each other, and replicas that must be equal."""

"""Figures of trained parameters on other data, and what a model gives for inputs."""

"""Calls of ops that two runs made in one step, held against each other in the order of execution."""

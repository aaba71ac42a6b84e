"""Runs that survive their process: checkpoints, their files, and where `fit` writes them."""

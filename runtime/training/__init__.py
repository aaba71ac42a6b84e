"""The trainer, and what goes with a run: callbacks, checkpoints, metrics, progress, a trace."""

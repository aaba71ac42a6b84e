"""The rules of version 1, and what is said of a trace that breaks one."""

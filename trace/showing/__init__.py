"""A trace and a folder of traces as people look at them in a terminal."""

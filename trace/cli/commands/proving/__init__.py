"""Commands that hold a run against its rules, another run, or what its model computes now."""

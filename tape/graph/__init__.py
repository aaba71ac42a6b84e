"""The graph of a tape: its nodes, the sweeps over it, and what can be hooked into them."""

"""dgrr: a typed tape autograd engine whose training can be recorded, replayed and proven to the last bit.

The three wings are `dgrr.tape`, `dgrr.runtime` and `dgrr.trace`; importing dgrr alone loads none of them.
"""

__version__ = "0.1.0"

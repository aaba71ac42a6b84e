"""Pictures of tensors: a cell for each element, coloured by its sign and size, as PNG for notebooks and in characters.

Zero is white, what is above it red, below it blue, to the limit of the colours. The last two axes are rows and columns
of a facet; the axes before them lay facets side by side and below each other, with grey between them. Of a large tensor
every k-th element of an axis is shown. For people to read: no part of the bit contract.
"""

from .picture import Picture

__all__ = ["Picture"]

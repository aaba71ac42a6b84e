"""The type of plain shapes, for what stands below `Shape`."""

Sizes = tuple[int, ...]

"""Memory that PyTorch gives as it is found."""

from collections.abc import Iterable
from typing import Any

from ..arrays import local_part


class BlankMemory:
    """Which memory has not been written as a whole since it was given out."""

    def __init__(self) -> None:
        self.places = set[int]()

    def has(self, tensor: Any) -> bool:
        """Whether the bits of a tensor may mean nothing."""
        return _place(tensor)[0] in self.places

    def follow(self, taken: Iterable[Any], given: Iterable[Any], changed: Iterable[Any], *, is_blank: bool) -> None:
        """An op has run: what it took, what it gave, and what it wrote to."""
        before = {_place(tensor)[0] for tensor in taken}
        for tensor in given:
            place = _place(tensor)[0]
            if is_blank:
                self.places.add(place)
            elif place not in before:
                self.places.discard(place)
        for place, nbytes, whole in map(_place, changed):
            if nbytes == whole and not is_blank:
                self.places.discard(place)


def _place(tensor: Any) -> tuple[int, int, int]:
    """Where the memory of a tensor lies, how many bytes it has, and how many the whole of that memory."""
    local = local_part(tensor)
    if local.is_sparse:
        return 0, 0, 1
    memory = local.untyped_storage()
    return memory.data_ptr(), local.numel() * local.element_size(), memory.nbytes()

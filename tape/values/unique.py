"""What is never copied or pickled, because it would not be the same: its memory or its place is part of what it is."""

from typing import ClassVar, NoReturn, SupportsIndex

from ..errors import TapeError


class Unique:
    """Base of what `copy` and `pickle` must refuse: a copy would share arrays with the first, or point into them.

    >>> import copy
    >>> class Slate(Unique):
    ...     instead = "make another"
    >>> copy.copy(Slate())
    Traceback (most recent call last):
    dgrr.tape.errors.TapeError: Slate: expected not to be copied or pickled; make another
    """

    __slots__ = ()

    instead: ClassVar[str]
    """What to do instead."""

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """What `copy.copy`, `copy.deepcopy` and `pickle` ask for. Raises TapeError."""
        raise TapeError(f"{type(self).__name__}: expected not to be copied or pickled; {self.instead}")

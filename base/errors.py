"""The base of all errors that are raised on purpose, and that of a value outside those that are taken."""


class DgrrError(Exception):
    """Base of all errors that the engine raises on purpose."""

    _placed = False

    def raised_in(self, layer: str) -> None:
        """Put the name of the layer that it passes on its way out before the text: ``0: …``, then ``encoder.0: …``.

        >>> error = DomainError("relu: argument 'x': …")
        >>> error.raised_in("0")
        >>> error.raised_in("encoder")
        >>> print(error)
        encoder.0: relu: argument 'x': …
        """
        self.args = (f"{layer}{'.' if self._placed else ': '}{self}", *self.args[1:])
        self._placed = True


class DomainError(DgrrError, ValueError):
    """An attribute outside the values for which an op is defined."""

"""The root of all errors that are raised on purpose, and those that every wing raises."""


class DgrrError(Exception):
    """Root of all errors that dgrr raises on purpose: of the engine, of a training, of a trace, of a command."""

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
    """A value that is not allowed: of an attribute, of an argument, in a text or a file."""


class DTypeError(DgrrError, TypeError):
    """A type that does not fit, of elements or of an argument; nothing is converted silently."""


class NonFiniteError(DgrrError, ArithmeticError):
    """A value, a loss or a gradient that is infinite or NaN; the text says which was the first."""


class MissingAttributeError(DgrrError, AttributeError):
    """A name that is not here: one of another library, or a mistyped one."""

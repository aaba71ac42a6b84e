"""Every error of the engine. Each text names the op, the argument, what was expected, what was given and the fix."""

from ..base.errors import (
    DgrrError as DgrrError,
    DomainError as DomainError,
    DTypeError as DTypeError,
    MissingAttributeError as MissingAttributeError,
    NonFiniteError as NonFiniteError,
)


class ShapeError(DgrrError, ValueError):
    """Sizes that do not fit: ``matmul: argument 'b': expected shape (3, N), got (4, 5)``."""


class BroadcastWarning(UserWarning):
    """An operator repeats both of its operands, one of which has fewer axes: maybe a column and a row by accident."""


class TapeError(DgrrError, RuntimeError):
    """A Var used with a tape that it does not belong to, or after that tape was reset."""


class BoundsError(DgrrError, IndexError):
    """An index outside the axis it points into."""


class SingularMatrixError(DgrrError, ArithmeticError):
    """A matrix without an inverse, where one is needed."""


class GradientError(DgrrError, RuntimeError):
    """A backward pass that is impossible: a wrong seed, a wrong contribution, nothing to differentiate."""

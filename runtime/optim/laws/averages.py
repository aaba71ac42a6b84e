"""The formula of running averages of parameters."""

from ....tape.numerics.simd.operations import Number
from .formulas import mixed
from .pointwise import law


@law("ema")
def ema(average: Number, parameter: Number, decay: float) -> tuple[Number, ...]:
    """The average after an update, in the places of a parameter and its gradient."""
    return (mixed(average, parameter, decay),)

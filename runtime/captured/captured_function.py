"""A captured function of arrays: recorded once for each signature, then a table of kernel calls."""

from collections.abc import Callable
from typing import Any

from ..library.source import LibrarySource, Weights
from ..step.batch import map_batch
from ..step.training_step import StateDict
from .captured_forward import CapturedForward
from .kept import PLAN_BYTES
from .replayed_step import Device, mirror_of


class CapturedFunction:
    """What `capture_function` gives: the same function of arrays. For one thread at a time."""

    def __init__(self, function: Callable[..., Any], plan_bytes: int = PLAN_BYTES, device: Device = "cpu") -> None:
        self._function = function
        self._name = getattr(function, "__qualname__", type(function).__name__)
        arrays: StateDict = {"params": {}, "state": {}, "model_state": {}}
        self._forward = CapturedForward(
            lambda p, given, context: function(*given),
            arrays,
            plan_bytes=plan_bytes,
            mirror=mirror_of(arrays, device),
        )

    def __repr__(self) -> str:
        return f"<CapturedFunction of {self._name}>"

    def library_source(self, weights: Weights) -> LibrarySource:
        """What `export_library` makes a library of."""
        return self._forward.source(self._function, self._name.split(".")[-1], weights)

    def __call__(self, *arrays: Any) -> Any:
        """The result, with an array of the caller's own in place of each Var. Raises as `capture_function`."""
        return map_batch(lambda where, array: array.copy(), self._forward(arrays))


def capture_function(
    function: Callable[..., Any], *examples: Any, plan_bytes: int = PLAN_BYTES, device: Device = "cpu"
) -> CapturedFunction:
    """A function of Vars, recorded and compiled as a function of arrays: for inference, or anything that needs no
    gradient.

    It runs once for each signature of its arguments, on values that have only shapes, and from then on as a table of
    kernel calls, with the bits that it has op by op. Each call reads the current contents of arrays that it closes
    over; everything else from outside must stay unchanged (docs/captured_steps.md).

    Args:
        function: of Vars; it returns Vars, or tuples, lists and dicts of Vars.
        examples: arrays, or tuples, lists and dicts of arrays, whose signature is captured at once.
        plan_bytes: how much memory the tables of calls of different shapes may take. With more than two shapes, each is
            captured when it has come 32 times, and runs op by op before.
        device: where it runs, with the same bits: "cpu", or "cuda", an NVIDIA GPU, which captures every shape at once.

    Raises:
        TapeError: the function reads a value.
        CaptureError: it behaves differently when it is called again.
        DomainError: it returns anything but Vars.
        BoundsError: an index is out of range.
        CudaError: a device "cuda" that is not there, or a kernel that has no form for it.

    >>> import numpy as np
    >>> from dgrr.runtime import capture_function
    >>> from dgrr.tape import nn
    >>> model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    >>> params, x = model.init(seed=0), np.ones((5, 3), np.float32)
    >>> predict = capture_function(model, params, x)
    >>> predict(params, x).shape, predict(params, x[:1]).shape
    ((5, 2), (1, 2))
    """
    captured = CapturedFunction(function, plan_bytes, device)
    if examples:
        captured(*examples)
    return captured

"""A value through which no gradient flows: the same elements, where they lie."""

from ...errors import DTypeError
from ...record.derivative import NO_GRAD
from ...record.lowering import reshaped
from ...record.op_decorator import op
from ...record.samples import Sample, bad
from ...record.types import D, S
from ...var.var import Var


@op(
    lower=lambda x: reshaped(x, x.spec.shape),
    along=NO_GRAD,
    reference=lambda x: x,
    samples=lambda make: [
        Sample((make(3, 2),)),
        Sample((make(2, 3, 4).T,)),
        Sample((make(),)),
        Sample((make(0, 3),)),
    ],
    errors=(bad(DTypeError, "argument 'x': expected a Var, a tensor, an array or a number, got NoneType", None),),
    batch_axis={"x": 0},
    excused={"slope": "that its slope counts as 0 is what the op is for"},
)
def stop_gradient(x: Var[D, *S]) -> Var[D, *S]:
    """The same value as a constant: nothing behind it gets a gradient through it, nor its result a tangent.

    Nothing is copied. In every mode: with ``create_graph``, in forward mode and in captured steps alike.

    Source: jax.lax.stop_gradient; torch.Tensor.detach.

    >>> from dgrr.tape import Tape, ops
    >>> tape = Tape()
    >>> x = tape.param([3.0], name="x")
    >>> grads = tape.backward_scalar((x * ops.stop_gradient(x)).sum())
    >>> grads[x].numpy()
    array([3.])
    """
    ...

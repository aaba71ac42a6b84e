"""The step of a matrix product."""

from math import prod

from ...record.lowering import Slot, StridedStep, reshaped
from ...values.spec import Spec
from .kernels.gemm import gemm as gemm_kernel
from .kernels.product import Product


def gemm(a: Slot, b: Slot, bias: Slot | None = None) -> Slot:
    """``a @ b (+ bias)`` over the last two axes; ``b`` has a's leading axes or none."""
    *batch, m, k = a.shape
    n, leading = b.shape[-1], prod(batch)
    out = Spec((*batch, m, n), a.dtype)
    if b.spec.rank == 2:  # one product over all leading axes
        a, leading, m = _collapsed(a, 2), 1, leading * m
    else:
        a, b = _collapsed(a, 4), _collapsed(b, 4)
    group = a.shape[1] if a.spec.rank == 4 else 1
    inputs = (a, b) if bias is None else (a, b, bias)
    product = Product(leading, m, n, k, a.dtype.itemsize, bias=bias is not None, group=group)
    return Slot(out, StridedStep(gemm_kernel, inputs, out, product, strided=(0, 1)))


def _collapsed(x: Slot, rank: int) -> Slot:
    """``x`` with its leading axes joined so that at most ``rank`` axes are left."""
    joined = x.spec.rank - rank + 1
    return x if joined <= 1 else reshaped(x, (prod(x.shape[:joined]), *x.shape[joined:]))

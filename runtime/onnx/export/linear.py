"""Products of matrices."""

from .graph import OpCall, exports


@exports("matmul")
def _matmul(c: OpCall) -> str:
    return c("MatMul", c.x, c.input(1))


@exports("linear")
def _linear(c: OpCall) -> str:
    if len(c.shape) == 2:
        return c("Gemm", *[name for name in c.inputs if name is not None], transB=1)
    made = c("MatMul", c.x, c("Transpose", c.input(1), perm=[1, 0]))
    bias = c.inputs[2]
    return made if bias is None else c("Add", made, bias)

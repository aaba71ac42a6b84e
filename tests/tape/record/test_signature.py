"""Signatures: annotations that bind sizes and dtypes, and the cache of what was prepared for them."""

from typing import Any, overload
from unittest.mock import patch

import numpy as np
import pytest

from dgrr.tape import AnyTensor, DTypeError, Shape, ShapeError, Tape, TapeError, Var, boolean, i64, ops
from dgrr.tape.record.op import Op
from dgrr.tape.record.signature import Signature
from dgrr.tape.record.types import Bs, D, F, K, M, N, S
from dgrr.tape.values.spec import Spec
from dgrr.tape.var.op_table import OPS

pytestmark = pytest.mark.quick

F32, F64, I64, BOOL = (np.dtype(t) for t in (np.float32, np.float64, np.int64, np.bool_))


@overload
def product(a: Var[F, *Bs, M, K], b: Var[F, K, N]) -> Var[F, *Bs, M, N]: ...
@overload
def product(a: Var[F, *Bs, M, K], b: Var[F, *Bs, K, N]) -> Var[F, *Bs, M, N]: ...
def product(a: Any, b: Any) -> Any:
    """Two shapes of operands."""


def product_signature() -> Signature:
    def implementation(a: Var[Any, *tuple[Any, ...]], b: Var[Any, *tuple[Any, ...]]) -> Var[Any, *tuple[Any, ...]]: ...

    implementation.__qualname__, implementation.__module__ = product.__qualname__, product.__module__
    implementation.__name__ = "product"
    return Signature(implementation, exact=True)


def specs(*given: tuple[Any, ...]) -> list[Spec]:
    return [Spec(shape, dtype) for shape, dtype in given]


def pick(
    x: Var[D, M, N], rows: Var[i64, K], mask: Var[boolean, N] | None = None, scale: float = 1.0
) -> Var[D, K, N]: ...


def test_inputs_attributes_and_optional_inputs_are_told_apart() -> None:
    signature = Signature(pick, exact=True)
    assert signature.inputs == ("x", "rows", "mask")
    assert signature.attributes == ("scale",)
    assert signature.tail[-1] == 1.0
    assert signature.optional == {"mask"}


def test_the_annotations_give_the_result() -> None:
    signature = Signature(pick, exact=True)
    given = specs(((5, 3), F32), ((2,), I64), ((3,), BOOL))
    assert signature.unify(given) == Spec((2, 3), F32)
    assert signature.unify([*given[:2], None]) == Spec((2, 3), F32)
    assert signature.unify(specs(((5, 3), I64), ((2,), I64), ((3,), BOOL))) == Spec((2, 3), I64)


@pytest.mark.parametrize(
    ("given", "error", "text"),
    [
        (
            [((5,), F32), ((2,), I64), ((3,), BOOL)],
            ShapeError,
            "pick: argument 'x': expected shape (M, N), got (5,)",
        ),
        (
            [((5, 3), F32), ((2,), I64), ((4,), BOOL)],
            ShapeError,
            "pick: argument 'mask': expected shape (3,), got (4,)",
        ),
        (
            [((5, 3), F32), ((2,), F32), ((3,), BOOL)],
            DTypeError,
            "pick: argument 'rows': expected int64, got float32",
        ),
        (
            [((5, 3), F32), ((2,), I64), ((3,), I64)],
            DTypeError,
            "pick: argument 'mask': expected bool, got int64",
        ),
    ],
)
def test_the_first_argument_that_does_not_fit_is_named(given: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        Signature(pick, exact=True).unify(specs(*given))
    assert text in str(caught.value)


def test_overloads_are_tried_in_turn() -> None:
    signature = product_signature()
    assert signature.unify(specs(((2, 3), F64), ((3, 4), F64))) == Spec((2, 4), F64)
    assert signature.unify(specs(((7, 2, 3), F64), ((3, 4), F64))) == Spec((7, 2, 4), F64)
    assert signature.unify(specs(((7, 2, 3), F64), ((7, 3, 4), F64))) == Spec((7, 2, 4), F64)
    with pytest.raises(ShapeError, match=r"^product: argument 'b': expected shape \(3, N\), got \(7, 4, 4\)$"):
        signature.unify(specs(((7, 2, 3), F64), ((7, 4, 4), F64)))


def test_a_float_variable_takes_one_float_type() -> None:
    def both(a: Var[F, *S], b: Var[F, *S]) -> Var[F, *S]: ...

    signature = Signature(both, exact=True)
    with pytest.raises(
        DTypeError, match="both: argument 'a': expected float32 or float64, got int64; convert with ops"
    ):
        signature.unify(specs(((2,), I64), ((2,), I64)))
    with pytest.raises(DTypeError, match=r"both: argument 'b': expected float32, got float64; convert with ops.cast"):
        signature.unify(specs(((2,), F32), ((2,), F64)))


def test_a_result_that_annotations_cannot_say() -> None:
    def gradual(x: Var[F, *S]) -> Var[F, *tuple[Any, ...]]: ...

    assert Signature(gradual, exact=False).unify(specs(((2,), F32))) is None
    with pytest.raises(TypeError, match="op gradual: the annotations do not decide the result's shape; give infer="):
        Signature(gradual, exact=True)


# ---------------------------------------------------------------------- the cache


def prepared(name: str) -> Any:
    """An op with an empty cache while the context lasts."""
    return patch.object(OPS[name], "prepared", {})


def tensor(*values: float) -> AnyTensor:
    return AnyTensor(np.array(values))


def test_a_signature_is_prepared_once() -> None:
    with prepared("add") as cache:
        for _ in range(3):
            ops.add(tensor(1.0, 2.0), tensor(3.0, 4.0))  # type: ignore[arg-type]
        assert len(cache) == 1
        ops.add(tensor(1.0), tensor(3.0))  # type: ignore[arg-type]
        ops.add(AnyTensor(np.ones(2, np.float32)), AnyTensor(np.ones(2, np.float32)))  # type: ignore[arg-type]
        assert len(cache) == 3


@pytest.mark.parametrize("order", [(0.0, -0.0), (-0.0, 0.0)])
def test_zeros_of_either_sign_do_not_collide(order: tuple[float, float]) -> None:
    with prepared("scale"):
        x = Tape[Any]().leaf([1.0])
        signs = [bool(np.signbit(ops.scale(x, c).numpy()[0])) for c in order]
    assert signs == [bool(np.signbit(c)) for c in order]


def test_nan_is_prepared_once() -> None:
    with prepared("scale") as cache:
        x = Tape[Any]().leaf([1.0])
        for _ in range(3):
            assert np.isnan(ops.scale(x, float("nan")).item())
        assert len(cache) == 1


def test_bools_integers_and_floats_do_not_collide() -> None:
    with prepared("power"):
        x = Tape[Any]().leaf([3.0])
        assert ops.power(x, 1).item() == 3.0
        with pytest.raises(DTypeError, match=r"^power: argument 'exponent': expected a number, got True$"):
            ops.power(x, True)
        assert ops.power(x, 1).item() == 3.0


def test_nested_attributes_do_not_collide() -> None:
    with prepared("getitem"):
        x = Tape[Any]().leaf([[1.0, 2.0]])
        assert x[0, 1].item() == 2.0
        with pytest.raises(ShapeError, match=r"use ops.index for arrays of indices"):
            _ = x[0, True]
        assert x[:1, 1:].numpy().tolist() == [[2.0]]
        assert x[:, :].numpy().tolist() == [[1.0, 2.0]]


def test_numpy_numbers_are_attributes_like_python_numbers() -> None:
    with prepared("scale") as cache:
        x = Tape[Any]().leaf([1.0])
        ops.scale(x, 0.5)
        ops.scale(x, np.float64(0.5))
        ops.scale(x, np.float32(0.5))  # type: ignore[arg-type]
        assert len(cache) == 1


def test_the_oldest_signature_is_dropped_first() -> None:
    with prepared("neg") as cache, patch.dict(Op.compute.__globals__, PREPARED_KEPT=3):
        x = [AnyTensor(np.ones(n)) for n in range(1, 6)]
        for tensor in x[:4]:
            ops.neg(tensor)  # type: ignore[arg-type]
        assert [key[0][0].shape for key in cache] == [(2,), (3,), (4,)]
        ops.neg(x[4])  # type: ignore[arg-type]
        ops.neg(x[0])  # type: ignore[arg-type]
        assert [key[0][0].shape for key in cache] == [(4,), (5,), (1,)]
        assert len(cache) == 3


def test_a_failure_is_not_remembered() -> None:
    with prepared("reshape") as cache:
        x = Tape[Any]().leaf(np.ones((2, 3)))
        for _ in range(2):
            with pytest.raises(ShapeError, match="expected 6 elements"):
                x.reshape(4, 2)
        assert not cache


# ---------------------------------------------------------------------- calls


def test_arguments_by_name_and_by_position() -> None:
    x = Tape[Any]().leaf(np.arange(6.0).reshape(2, 3))
    expected = [3.0, 5.0, 7.0]
    assert ops.reduce_sum(x, 0).numpy().tolist() == expected
    assert ops.reduce_sum(x, axis=0).numpy().tolist() == expected
    assert ops.reduce_sum(axis=0, x=x).numpy().tolist() == expected
    assert ops.reduce_sum(x, [0]).numpy().tolist() == expected  # type: ignore[arg-type]


def test_calls_with_the_wrong_arguments() -> None:
    x = Tape[Any]().leaf([1.0])
    wrong: list[tuple[Any, str]] = [
        (lambda: ops.add(x), "^add: missing a required argument: 'b'$"),  # type: ignore[call-arg]
        (lambda: ops.exp(x, x), "^exp: too many positional arguments$"),  # type: ignore[call-arg]
        (lambda: ops.exp(x, axis=1), "^exp: got an unexpected keyword argument 'axis'$"),  # type: ignore[call-arg]
    ]
    for call, text in wrong:
        with pytest.raises(TypeError, match=text):
            call()


def test_arrays_alone_need_a_tape() -> None:
    with pytest.raises(
        TapeError, match=r"^exp: expected a Var among the arguments; put an array on a tape with tape.leaf$"
    ):
        ops.exp(np.ones(3))  # type: ignore[arg-type]


def test_ops_of_tensors_compute_without_a_tape() -> None:
    out: Any = ops.add(tensor(1.0, 2.0), tensor(3.0, 4.0))  # type: ignore[arg-type]
    assert isinstance(out, AnyTensor)
    assert out.numpy().tolist() == [4.0, 6.0]


def test_public_functions_keep_their_own_face() -> None:
    assert ops.matmul.__name__ == "matmul"
    assert (ops.matmul.__doc__ or "").startswith("The matrix product")
    assert Shape(Tape[Any]().leaf([1.0]).shape) == (1,)

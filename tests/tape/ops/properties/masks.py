"""Whichever of an op's inputs are trainable: gradients arrive at just those, and no other VJP is run."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from dgrr.tape import GradientError, Tape
from dgrr.tape.record.derivative import Derivative
from dgrr.tape.record.op import Op

from .cases import Array, Case, Record, assert_same_bits, cases
from .gradients import applied, differentiable, gradients
from .numeric import normal


def check_masks(op: Record) -> None:
    """Under each choice of trainable inputs gradients arrive at just those, the same bits as under all of them.

    The result requires a gradient if one of them has a derivative, and the VJPs of those alone are run, once each.
    """
    rng = np.random.default_rng(5)
    for case in cases(op):
        y = case.result
        if y.dtype.kind != "f":
            _check_no_gradient(case)
            continue
        seed = normal(rng, y)
        full = gradients(case, seed) if differentiable(case) else [None] * len(case.arrays)
        for trainable in _choices(len(case.float_inputs)):
            _check_mask(case, seed, full, trainable)


def _choices(inputs: int) -> list[tuple[bool, ...]]:
    """Which of some inputs are trainable: each choice; of more than three none, one alone, all but one, and all."""
    every = list(product((False, True), repeat=inputs))
    return [choice for choice in every if inputs <= 3 or not 1 < sum(choice) < inputs - 1]


def _check_no_gradient(case: Case) -> None:
    tape: Tape[Any] = Tape()
    _, out = applied(tape, case)
    assert not tape.node(out).requires_grad, f"{case.label}: the result is of {out.dtype} and requires a gradient"


def _check_mask(case: Case, seed: Array, full: Sequence[Array | None], trainable: Sequence[bool]) -> None:
    label = f"{case.label}, trainable {trainable}"
    wanted = [i for i, on in zip(case.float_inputs, trainable, strict=True) if on and i in differentiable(case)]
    tape: Tape[Any] = Tape()
    made, out = applied(tape, case, trainable)
    assert tape.node(out).requires_grad == bool(wanted), f"{label}: requires_grad of the result"
    if not wanted:
        with pytest.raises(GradientError, match="depends on no leaf that requires a gradient"):
            tape.backward_dense(out, seed)
        return
    with _applied_rules() as rules:
        grads = tape.backward_dense(out, seed)
    if isinstance(case.op, Op):
        ran = [i for i, rule in enumerate(case.op.vjp) for applied_rule in rules if applied_rule is rule]
        assert ran == wanted, f"{label}: the VJPs of inputs {ran} were run"
    for i, leaf in enumerate(made):
        g = None if leaf is None else grads[leaf]
        assert (g is not None) == (i in wanted), f"{label}: gradient of input {i}"
        if g is not None and leaf is not None:
            assert g.dtype == leaf.dtype, f"{label}: gradient of input {i} is of {g.dtype}"
            assert_same_bits(g.array, full[i], f"{label}: gradient of input {i}")  # type: ignore[arg-type]


@contextmanager
def _applied_rules() -> Iterator[list[Derivative]]:
    """Every derivative rule that is applied meanwhile."""
    applied_rules: list[Derivative] = []
    made = Derivative.pull.func

    def noted(rule: Derivative) -> Callable[..., Any]:
        def pull(*args: Any) -> Any:
            applied_rules.append(rule)
            return made(rule)(*args)

        return pull

    with patch.object(Derivative, "pull", property(noted)):
        yield applied_rules


MASKS: dict[str, Callable[[Any], None]] = {"masks": check_masks}

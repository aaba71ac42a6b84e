"""Gradients as plain lists, for comparison."""

from typing import Any

from dgrr.tape import AnyVar, Tape


def values(tape: Tape[Any], out: AnyVar, *leaves: AnyVar) -> list[Any]:
    """The gradients of a scalar by leaves, as lists."""
    grads = tape.backward_dense(out)
    return [None if (g := grads[leaf]) is None else g.numpy().tolist() for leaf in leaves]

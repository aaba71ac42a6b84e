"""Specs: one object for each pair of shape and dtype, whole as soon as anybody can see it."""

import copy
import pickle
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import pytest

from dgrr.tape.values.spec import Spec

pytestmark = pytest.mark.quick

FLOAT32 = np.dtype(np.float32)


def test_equal_specs_are_one_object() -> None:
    spec = Spec((2, 3), FLOAT32)
    assert all(same is spec for same in (Spec((2, 3), FLOAT32), copy.deepcopy(spec), pickle.loads(pickle.dumps(spec))))
    assert (spec.shape, spec.dtype, spec.size, spec.rank, spec.floating) == ((2, 3), FLOAT32, 6, 2, True)
    assert Spec((2, 3), np.dtype(np.int64)) is not spec and not Spec((), np.dtype(np.bool_)).floating


def test_other_threads_never_see_half_a_spec(monkeypatch: pytest.MonkeyPatch) -> None:
    """They look into the table without its lock, so what is put there must be whole."""
    seen = list[tuple[Any, ...]]()

    class Watched(WeakValueDictionary[Any, Spec]):
        def __setitem__(self, key: Any, spec: Spec) -> None:
            seen.append((spec.shape, spec.dtype, spec.size, spec.rank, spec.floating))
            super().__setitem__(key, spec)

    monkeypatch.setattr(Spec, "_all", Watched())
    assert Spec((4, 5), FLOAT32) is Spec((4, 5), FLOAT32)
    assert seen == [((4, 5), FLOAT32, 20, 2, True)]

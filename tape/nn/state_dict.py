"""Parameters and state in a file, in the format of safetensors (https://github.com/huggingface/safetensors).

A file holds the arrays under their names, as PyTorch's ``state_dict`` does. Its metadata holds the order of the
names, since the format itself sorts them, and the order of parameters decides bits where gradients are clipped.
"""

import json
from collections.abc import Mapping
from typing import Any, TypeVar, cast

import numpy as np
import numpy.typing as npt

from ...base.arrays import Array
from ...base.atomic_file import replacing
from ...base.packages import package
from ...base.system import FilePath
from ..errors import DomainError, DTypeError
from ..values.dtypes import DTYPES, FLOATS
from ..values.tensor import dense
from .layer import Layer
from .parameters import Parameters

A = TypeVar("A")
ArrayLikes = Mapping[str, npt.ArrayLike]
ORDER = "dgrr.order"
"""The key of the metadata that holds the names in their order, as a JSON list."""

_SHOWN, _LONGEST = 20, 200
"""How many names, and how many characters of an order, an error shows."""

_LONGEST_ESCAPE = 12
"""Characters by which JSON writes one: two escapes as in \\ud83d\\ude00."""

NUMPY_TYPES = ("F64", "F32", "F16", "I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8", "BOOL")
"""What safetensors calls the element types that numpy has."""


def save(path: FilePath, params: ArrayLikes, state: ArrayLikes | None = None) -> None:
    """Write parameters and state to one file; it is whole, or the one that stood there before.

    The bytes of the file are a function of the arrays, their names and their order alone.
    Raises DomainError for a name in both, DTypeError for elements that are not float32, float64, int64 or bool,
    ModuleNotFoundError without safetensors, OSError if the file cannot be written.
    """
    arrays = {name: _saved(name, value) for name, value in merged("save", params, state or {}).items()}
    written: bytes = _safetensors("save").numpy.save(arrays, metadata={ORDER: json.dumps(list(arrays))})
    with replacing(path) as file:
        file.write(written)


def merged(call: str, params: Mapping[str, A], state: Mapping[str, A]) -> dict[str, A]:
    """Parameters and state together. Raises DomainError for a name in both."""
    for name in params:
        if name in state:
            raise DomainError(
                f"{call}: arguments 'params' and 'state': expected names of their own, got {name!r} in both"
            )
    return {**params, **state}


def load(path: FilePath) -> dict[str, Array]:
    """The arrays of a file that `save` or another library wrote, by name; `load_state_dict` fits them to a model.

    Raises DomainError for a file that is damaged or of another format, DTypeError for element types that numpy has
    not, ModuleNotFoundError without safetensors, OSError if the file cannot be read.
    """
    package = _safetensors("load")
    try:
        with package.safe_open(path, framework="numpy") as file:
            return {name: _loaded(name, file) for name in _names(file)}
    except package.SafetensorError as error:
        raise DomainError(f"load: {str(path)!r} is damaged or no safetensors file: {error}") from None


def load_state_dict(model: Layer, arrays: ArrayLikes) -> tuple[dict[str, Array], dict[str, Array]]:
    """``(params, state)`` of a model from arrays by name: copies, in the model's order.

    Raises DomainError that names every entry that is missing, unexpected, or of another shape or no float type.
    """
    wanted, given = {**model.parameters(), **model.states()}, {name: np.asarray(a) for name, a in arrays.items()}
    wrong = [
        *(f"missing {name!r} {p.shape}" for name, p in wanted.items() if name not in given),
        *(f"unexpected {name!r} {a.shape}" for name, a in given.items() if name not in wanted),
        *_misfits(wanted, given),
    ]
    if wrong:
        raise DomainError(f"load_state_dict: argument 'arrays': expected those of the model, got {'; '.join(wrong)}")
    params, state = ({n: given[n].copy(order="C") for n in names} for names in (model.parameters(), model.states()))
    return params, state


def _misfits(wanted: Parameters, given: Mapping[str, Array]) -> list[str]:
    both = [(name, p.shape, given[name]) for name, p in wanted.items() if name in given]
    return [
        *(f"{name!r} of shape {a.shape} instead of {shape}" for name, shape, a in both if a.shape != shape),
        *(f"{name!r} of {a.dtype} instead of float32 or float64" for name, _, a in both if a.dtype not in FLOATS),
    ]


def _saved(name: str, value: npt.ArrayLike) -> Array:
    array = np.asarray(value)
    if array.dtype not in DTYPES:
        raise DTypeError(f"save: {name!r}: expected float32, float64, int64 or bool, got {array.dtype}")
    return dense(array)


def _names(file: Any) -> list[str]:
    """The names in their order, or sorted in a file of another library. Raises DomainError for the order of others."""
    there: list[str] = sorted(file.keys())
    metadata: dict[str, str] = file.metadata() or {}
    order = metadata.get(ORDER)
    if order is None:
        return there
    names = _order(order, there)
    if names is None:
        few = ", ".join(map(repr, there[:_SHOWN])) + (", …" if len(there) > _SHOWN else "")
        given = order if len(order) <= _LONGEST else f"{order[:_LONGEST]}…"
        raise DomainError(f"load: metadata {ORDER!r}: expected a list of the names [{few}], got {given}")
    return names


def _order(text: str, there: list[str]) -> list[str] | None:
    """The names in the order of a text, if it is a JSON list of them. A longer text than such a list is not read."""
    if len(text) > 2 + sum(4 + _LONGEST_ESCAPE * len(name) for name in there):
        return None
    try:
        names = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(names, list) or set(map(type, cast(Any, names))) - {str}:
        return None
    listed: list[str] = cast(Any, names)
    return listed if sorted(listed) == there else None


def _loaded(name: str, file: Any) -> Array:
    kind = file.get_slice(name).get_dtype()
    if kind not in NUMPY_TYPES:
        raise DTypeError(f"load: {name!r}: expected an element type of numpy, got {kind}; convert it before saving")
    array: Array = file.get_tensor(name)
    return array


def _safetensors(call: str) -> Any:
    package(call, "safetensors.numpy")
    return package(call, "safetensors")

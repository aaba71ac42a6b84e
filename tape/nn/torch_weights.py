"""Weights from PyTorch and back: the names and layouts of ``state_dict``, layer by layer.

Most layers have PyTorch's names and layouts as they are. Attention has not: PyTorch keeps the three projections of its
input one below another, output before input, and a block calls its attention ``self_attn``.
"""

import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, cast

import numpy as np

from ...base.arrays import Array, Arrays
from ...base.packages import package
from ...base.system import FilePath
from ..errors import DomainError, DTypeError
from ..values.tables import PlainTable
from .layer import Layer
from .layers.sequences.attention import MultiHeadAttention
from .layers.sequences.transformer import TransformerBlock, TransformerDecoderBlock
from .layers.tied import Tied
from .state_dict import load, load_state_dict, merged

PARTS: Mapping[type[Layer], Mapping[str, str]] = {
    TransformerBlock: {"attention": "self_attn"},
    TransformerDecoderBlock: {"attention": "self_attn", "cross_attention": "multihead_attn"},
}
"""What PyTorch calls parts of a layer, where it calls them otherwise."""

COUNTS = "num_batches_tracked"
"""What PyTorch's batch norms count, as an integer; here those without momentum alone, as a float."""


class TorchWeights(NamedTuple):
    """What `load_torch` gives."""

    params: dict[str, Array]
    state: dict[str, Array]
    table: PlainTable
    """One row for each of them: its name here, its name there, its shape here."""


class _Place(NamedTuple):
    """Where an array of a model stands in PyTorch's."""

    name: str
    torch: str
    rows: slice | None = None
    """Of the first axis there, if it is a part of an array."""
    transposed: bool = False

    def read(self, whole: Array) -> Array:
        """The array of the model."""
        part = whole if self.rows is None else whole[self.rows]
        if self.name.rpartition(".")[2] == COUNTS:
            return part.astype(np.float32)
        return part.T if self.transposed else part


def load_torch(
    source: FilePath | Mapping[str, Any], model: Layer, rename: Mapping[str, str] | None = None
) -> TorchWeights:
    """The parameters and state of a model from PyTorch's ``state_dict`` of the same model.

    Args:
        source: the dict, of tensors or arrays; or a file: one of safetensors, or one that ``torch.save`` wrote, which
            needs PyTorch and is read with ``weights_only=True``.
        model: the layers. Parts have the names that PyTorch's modules have; containers count alike. A parameter that is
            tied may stand under one of its names, or under several if its bits are the same.
        rename: beginnings of PyTorch's names and what to read instead: ``{"module.": "", "encoder.": "0."}``. The first
            that fits counts.

    Raises:
        DomainError: names that are missing or left over, or renamed to one; another shape, or elements that are no
            float32 or float64; a tied parameter with two values; a file that holds no ``state_dict``.
        DTypeError: a source that is neither a dict nor a path, such as a module.
        ModuleNotFoundError: PyTorch or safetensors is needed for the file; OSError if it cannot be read.

    >>> from dgrr.tape import nn
    >>> model = nn.Linear(2, 1)
    >>> found = nn.load_torch({"fc.weight": np.ones((1, 2), np.float32), "fc.bias": np.zeros(1, np.float32)}, model,
    ...                       rename={"fc.": ""})
    >>> found.params["weight"]
    array([[1., 1.]], dtype=float32)
    """
    given = _by_new_names(_read(source), rename or {})
    places = _by_name(model)
    _require_names(places, given)
    there = {name: [place for place in found if place.torch in given] for name, found in places.items()}
    arrays = {name: _one(name, found, given) for name, found in there.items()}
    params, state = load_state_dict(model, arrays)
    rows = [{"name": n, "PyTorch": found[0].torch, "shape": arrays[n].shape} for n, found in there.items()]
    return TorchWeights(params, state, PlainTable("", ("name", "PyTorch", "shape"), rows))


def to_torch(model: Layer, params: Arrays, state: Arrays | None = None) -> dict[str, Array]:
    """Parameters and state under PyTorch's names and in its layouts, as arrays: what `load_torch` reads.

    ``module.load_state_dict({name: torch.from_numpy(a) for name, a in made.items()})`` takes them there, and `save`
    writes them to a file of safetensors. A tied parameter stands under all of its names, as in PyTorch.
    Raises DomainError for a name that the model lacks, or that stands in both.

    >>> from dgrr.tape import nn
    >>> model = nn.TransformerBlock(4, num_heads=2, hidden=8)
    >>> list(nn.to_torch(model, model.init(seed=0)))[2:4]
    ['self_attn.in_proj_weight', 'self_attn.in_proj_bias']
    """
    arrays, parts = merged("to_torch", params, state or {}), dict[str, list[Array]]()
    for place in _places(model):
        if place.name not in arrays:
            raise DomainError(
                f"to_torch: argument 'params': expected {place.name!r}, got {', '.join(arrays) or 'none'}"
            )
        value = np.asarray(arrays[place.name])
        value = value.astype(np.int64) if place.name.rpartition(".")[2] == COUNTS else value
        parts.setdefault(place.torch, []).append(value.T if place.transposed else value)
    made = {name: np.concatenate(found) if len(found) > 1 else found[0].copy() for name, found in parts.items()}
    for name in [name for name in made if name.rpartition(".")[2] == "running_mean"]:
        made.setdefault(name.removesuffix("running_mean") + COUNTS, np.zeros((), np.int64))
    return made


def _by_new_names(source: Mapping[str, Any], rename: Mapping[str, str]) -> dict[str, Array]:
    """The arrays by their new names. Raises DomainError for two that get the same."""
    taken = dict[str, str]()
    for name in source:
        new = _renamed(name, rename)
        if new in taken:
            both = f"{taken[new]!r} and {name!r}"
            raise DomainError(f"load_torch: argument 'rename': expected names of their own, got {new!r} for {both}")
        taken[new] = name
    return {new: _array(source[name]) for new, name in taken.items()}


def _require_names(places: Mapping[str, list[_Place]], given: Mapping[str, Array]) -> None:
    absent = [found for found in places.values() if not any(place.torch in given for place in found)]
    known = {place.torch for found in places.values() for place in found}
    said = {
        "missing": sorted({place.torch for found in absent for place in found}),
        "unexpected": sorted(name for name in given.keys() - known if name.rpartition(".")[2] != COUNTS),
    }
    wrong = "; ".join(f"{what} {', '.join(names)}" for what, names in said.items() if names)
    if wrong:
        raise DomainError(f"load_torch: argument 'source': expected the names of the model, got {wrong}")


def _one(name: str, found: list[_Place], given: Mapping[str, Array]) -> Array:
    """What stands in all places of a parameter. Raises DomainError for a tied one with two values."""
    first, *others = ((place.torch, place.read(given[place.torch])) for place in found)
    for torch, array in others:
        if (array.dtype, array.shape, array.tobytes()) != (first[1].dtype, first[1].shape, first[1].tobytes()):
            raise DomainError(
                f"load_torch: argument 'source': expected one array for {name!r}, which the model ties, "
                f"got two that differ, {first[0]!r} and {torch!r}"
            )
    return first[1]


def _by_name(model: Layer) -> dict[str, list[_Place]]:
    """The places of each array of a model: several of one that is tied."""
    found = dict[str, list[_Place]]()
    for place in _places(model):
        found.setdefault(place.name, []).append(place)
    return found


def _places(layer: Layer, name: str = "", torch: str = "") -> Iterator[_Place]:
    """Where the arrays of a layer and its parts stand in PyTorch's ``state_dict``."""
    if isinstance(layer, MultiHeadAttention):
        yield from _attention(layer, name, torch)
        return
    if isinstance(layer, Tied):
        shared = {name + other: name + kept for other, kept in layer.names}
        yield from (p._replace(name=shared.get(p.name, p.name)) for p in _places(layer.model, name, torch))
        return
    for own in (*layer.own_parameters(), *layer.own_state()):
        yield _Place(name + own, torch + own)
    calls = PARTS.get(type(layer), {})
    for part, child in layer.children().items():
        yield from _places(child, f"{name}{part}.", f"{torch}{calls.get(part, part)}.")


def _attention(layer: MultiHeadAttention, name: str, torch: str) -> Iterator[_Place]:
    if layer.num_kv_heads not in (None, layer.num_heads):
        raise DomainError(f"{name or 'the model'}: expected attention that PyTorch has, got num_kv_heads of its own")
    size, joined = layer.embed_dim, layer.kdim in (None, layer.embed_dim) and layer.vdim in (None, layer.embed_dim)
    for number, which in enumerate("qkv"):
        rows = slice(number * size, (number + 1) * size)
        if joined:
            yield _Place(f"{name}w{which}", f"{torch}in_proj_weight", rows, transposed=True)
        else:
            yield _Place(f"{name}w{which}", f"{torch}{which}_proj_weight", transposed=True)
    if layer.bias:
        for number, which in enumerate("qkv"):
            rows = slice(number * size, (number + 1) * size)
            yield _Place(f"{name}b{which}", f"{torch}in_proj_bias", rows)
    yield _Place(f"{name}wo", f"{torch}out_proj.weight", transposed=True)
    if layer.bias:
        yield _Place(f"{name}bo", f"{torch}out_proj.bias")


def _read(source: object) -> Mapping[str, Any]:
    if isinstance(source, Mapping):
        return cast(Mapping[str, Any], source)
    if not isinstance(source, str | os.PathLike):
        raise DTypeError(
            f"load_torch: argument 'source': expected a state_dict or the path of one, got {type(source).__name__}; "
            "give module.state_dict()"
        )
    path = os.fspath(cast(FilePath, source))
    return load(path) if path.endswith(".safetensors") else _read_saved(path)


def _read_saved(path: str) -> Mapping[str, Any]:
    """What ``torch.save`` wrote. PyTorch raises errors of any kind for what it does not read."""
    torch = package("load_torch", "torch", instead=f", or pass a safetensors file instead of {path!r}")
    try:
        made: Any = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, MemoryError):
        raise
    except Exception as error:
        raise _no_state_dict(path, f"a whole module or a damaged file ({type(error).__name__})") from None
    if not isinstance(made, Mapping):
        raise _no_state_dict(path, type(made).__name__)
    return cast(Mapping[str, Any], made)


def _no_state_dict(path: str, given: str) -> DomainError:
    return DomainError(
        f"load_torch: {path!r}: expected a state_dict, got {given}; write it with torch.save(model.state_dict(), path)"
    )


def _renamed(name: str, rename: Mapping[str, str]) -> str:
    for old, new in rename.items():
        if name.startswith(old):
            return new + name.removeprefix(old)
    return name


def _array(value: Any) -> Array:
    """A tensor of PyTorch or an array; half floats of either kind as float32, which holds them exactly."""
    if hasattr(value, "detach"):
        held = value.detach().cpu()
        value = (held.float() if held.is_floating_point() and held.element_size() == 2 else held).numpy()
    return np.asarray(value)

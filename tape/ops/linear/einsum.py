"""Einstein summation, as sums, permutations and matrix products that the tape shows one by one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, cast

from ...errors import DTypeError, ShapeError, TapeError
from ...record.kinds import shown
from ...values.tensor import AnyTensor
from ...var.var import AnyVar, Var
from ..reduce.reduce import reduce_sum
from ..shape.reshape import permute, reshape
from ..shape.slicing import getitem
from .matmul import matmul

Labels = tuple[str, ...]

ELLIPSIS = "..."


@dataclass(frozen=True)
class _Term:
    """An operand on the way, and the label of each of its axes."""

    x: Any
    labels: Labels

    def sizes(self, labels: Labels) -> tuple[int, ...]:
        """The sizes of the axes with these labels."""
        return tuple([self.x.shape[self.labels.index(label)] for label in labels])

    def ordered(self, labels: Labels) -> "_Term":
        """The axes in another order."""
        if labels == self.labels:
            return self
        return _Term(permute(self.x, tuple([self.labels.index(label) for label in labels])), labels)

    def summed(self, wanted: Labels) -> "_Term":
        """The sum over the axes whose label is not wanted."""
        axes = tuple([i for i, label in enumerate(self.labels) if label not in wanted])
        if not axes:
            return self
        return _Term(reduce_sum(self.x, axes), tuple([label for label in self.labels if label in wanted]))

    def without_repeated(self, sizes: Mapping[str, int]) -> "_Term":
        """Without the axes of size 1 that stand for more: another operand says of how many."""
        kept = [i for i, label in enumerate(self.labels) if self.x.shape[i] == sizes[label]]
        if len(kept) == len(self.labels):
            return self
        return _Term(reshape(self.x, tuple([self.x.shape[i] for i in kept])), tuple([self.labels[i] for i in kept]))

    def diagonal(self) -> "_Term":
        """Axes with the same label joined to the one along which their indices are equal."""
        for label in self.labels:
            if self.labels.count(label) > 1:
                return self._joined(label).diagonal()
        return self

    def _joined(self, label: str) -> "_Term":
        """The last two axes of a label as one: every (n + 1)-th element of the n * n."""
        *_, i, j = [at for at, other in enumerate(self.labels) if other == label]
        rest = [at for at in range(len(self.labels)) if at not in (i, j)]
        x = permute(self.x, (*rest, i, j))
        *sizes, n, _ = x.shape
        flat = reshape(x, (*sizes, n * n))
        return _Term(getitem(flat, (..., slice(None, None, n + 1))), (*(self.labels[at] for at in rest), label))


def einsum(subscripts: str, *operands: Any) -> AnyVar:
    """The sum of products that ``subscripts`` names, such as ``"bij,bjk->bik"``, as in numpy.

    A label that is not in the result is summed; without ``->`` the result has the labels that stand once, in
    alphabetical order; ``...`` stands for leading axes; a label twice in one operand is its diagonal. An axis of
    size 1 stands for all indices where its label has another size in another operand. Operands are contracted from left
    to right, each pair by one `matmul`, so that the path, and with it the bits, is the one written: for another path
    call it twice. Arrays become constants.

    Source: numpy.einsum.
    Shapes: as ``subscripts`` says, one term for each operand -> the axes named behind ``->``
    Dtypes: the operands and the result float32 or float64, all alike; where nothing is summed or
        multiplied also int64 or bool.
    Raises:
        ShapeError: the subscripts do not fit the operands, or one label has two sizes other than 1.
        DTypeError: dtypes differ, or are not those of floats where something is summed or multiplied; the subscripts
            are no string.
        TapeError: no Var or tensor is among the operands.

    >>> from dgrr.tape import Tape, ops
    >>> x = Tape().leaf([[1.0, 2.0], [3.0, 4.0]])
    >>> ops.einsum("ij->j", x).numpy(), ops.einsum("ii", x).item()
    (array([4., 6.]), 5.0)
    """
    if not isinstance(cast(object, subscripts), str):
        raise DTypeError(f"einsum: argument 'subscripts': expected a string, got {shown(subscripts)}")
    if not any(isinstance(x, Var | AnyTensor) for x in operands):
        raise TapeError("einsum: expected a Var among the arguments; put an array on a tape with tape.leaf")
    given = [_tensor(x) for x in operands]
    labels, wanted = _parsed(subscripts, [len(x.shape) for x in given])
    terms = [_Term(x, names) for x, names in zip(given, labels, strict=True)]
    sizes = _sizes(subscripts, terms)
    terms = [term.without_repeated(sizes).diagonal() for term in terms]
    first, *others = terms
    while others:
        second, *others = others
        needed = (*wanted, *(label for term in others for label in term.labels))
        first = _contracted(first, second, needed)
    result: AnyVar = first.summed(wanted).ordered(wanted).x
    return result


def _tensor(x: Any) -> Any:
    return cast(Any, x) if isinstance(x, Var | AnyTensor) else AnyTensor.leaf(x, "einsum: argument 'operands'")


def _parsed(subscripts: str, ranks: Sequence[int]) -> tuple[list[Labels], Labels]:
    """The labels of each operand and of the result. Raises ShapeError."""
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    inputs = left.split(",")
    if len(inputs) != len(ranks):
        raise _refused(subscripts, f"one for each of {len(ranks)} operands, got {len(inputs)}")
    labels = [_labels(subscripts, part, rank) for part, rank in zip(inputs, ranks, strict=True)]
    seen = [label for names in labels for label in names]
    leading = tuple(sorted({label for label in seen if label.startswith(ELLIPSIS)}, reverse=True))
    once = tuple(sorted(label for label in seen if seen.count(label) == 1 and label not in leading))
    wanted = _labels(subscripts, right, None, leading) if arrow else leading + once
    if len(set(wanted)) != len(wanted) or not set(wanted) <= set(seen):
        raise _refused(subscripts, f"each label of the result once, and in an operand, got {right!r}")
    return labels, wanted


def _labels(subscripts: str, part: str, rank: int | None, leading: Labels = ()) -> Labels:
    """The labels of an operand of a rank, or of the result (None), for which ``...`` means ``leading``."""
    before, dots, after = part.partition(ELLIPSIS)
    if not (before + after).isalpha() and before + after:
        raise _refused(subscripts, f"letters and one '...', got {part!r}")
    hidden = len(leading) if rank is None else rank - len(before + after)
    if rank is not None and (hidden < 0 or (hidden and not dots)):
        raise _refused(subscripts, f"a label for each of {rank} axes, got {part!r}")
    between = tuple(f"{ELLIPSIS}{i:02}" for i in range(hidden - 1, -1, -1)) if dots else ()
    return (*before, *between, *after)


def _refused(subscripts: str, wanted: str) -> ShapeError:
    return ShapeError(f"einsum: argument 'subscripts': expected {wanted} in {subscripts!r}")


def _sizes(subscripts: str, terms: Sequence[_Term]) -> dict[str, int]:
    """The size of each label: the one that is not 1. Raises ShapeError for a label that has two of them."""
    sizes: dict[str, int] = {}
    for i, term in enumerate(terms):
        own: dict[str, int] = {}
        for label, size in zip(term.labels, term.x.shape, strict=True):
            if own.setdefault(label, size) != size:
                raise _misfit(subscripts, label, str(own[label]), size, i)
            if 1 not in (size, sizes.get(label, 1)) and sizes[label] != size:
                raise _misfit(subscripts, label, f"{sizes[label]} or 1", size, i)
            sizes[label] = sizes.get(label, 1) if size == 1 else size
    return sizes


def _misfit(subscripts: str, label: str, wanted: str, size: int, i: int) -> ShapeError:
    return ShapeError(
        f"einsum: argument 'operands': expected size {wanted} along {label!r} of {subscripts!r}, "
        f"got {size} in operand {i}"
    )


def _contracted(a: _Term, b: _Term, needed: Labels) -> _Term:
    """The product of two terms as a matrix product: over what both have and nobody needs, for each of what all have."""
    a, b = a.summed((*needed, *b.labels)), b.summed((*needed, *a.labels))
    both = tuple([label for label in a.labels if label in b.labels])
    batch = tuple([label for label in both if label in needed])
    inner = tuple([label for label in both if label not in needed])
    rows = tuple([label for label in a.labels if label not in both])
    columns = tuple([label for label in b.labels if label not in both])
    left = _matrices(a, batch, rows, inner)
    right = _matrices(b, batch, inner, columns)
    sizes = (*a.sizes(batch), *a.sizes(rows), *b.sizes(columns))
    return _Term(reshape(matmul(left, right), sizes), (*batch, *rows, *columns))


def _matrices(term: _Term, batch: Labels, rows: Labels, columns: Labels) -> Any:
    """One matrix for each index of the batch, or one."""
    shape = (prod(term.sizes(rows)), prod(term.sizes(columns)))
    many = (prod(term.sizes(batch)),) if batch else ()
    return reshape(term.ordered((*batch, *rows, *columns)).x, (*many, *shape))

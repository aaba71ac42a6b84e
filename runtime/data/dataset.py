"""Data sets of arrays, and their batches: the same sequence in every run and on every machine."""

from collections.abc import Callable, Iterable, Iterator
from copy import copy
from functools import cached_property
from numbers import Integral
from typing import Any, Generic, Self, cast, overload

import numpy as np
import numpy.typing as npt

from ...base.arrays import Array
from ...tape.errors import DomainError, ShapeError
from ...tape.numerics.math.random import SEEDS, coordinate, permutation
from .digest import arrays_digest
from .epochs import Epochs, epoch_number, whole_number
from .orders import Indices, cut, fixed_order, fold_sizes, order_to_cut, part_sizes
from .sample_map import SampleMap, applied
from .samples import AnySample, NamedSample, S, Sample, SampleBatches, Samples, as_array, stacked


class Dataset(Generic[S]):
    """Arrays whose first axes count the same samples.

    Samples are tuples of arrays, or dicts of them where the arrays are given by name. Nothing is copied or read
    before samples are asked for, so an array may be a file larger than the memory: ``np.load(path, mmap_mode="r")``.
    Methods that return a data set choose samples by number and read none.

    Args:
        arrays: at least one array, or what numpy converts to one; the data set keeps read-only views.
        named: the same by name.

    Raises:
        ShapeError: no array, an array without axes, or arrays of different lengths.
        DTypeError: Python objects in place of numbers.
        DomainError: arrays both in turn and by name.

    >>> import numpy as np
    >>> data = Dataset(np.arange(6.0).reshape(3, 2), np.array([1, 0, 1]))
    >>> len(data)
    3
    >>> data[:2]
    (array([[0., 1.],
           [2., 3.]]), array([1, 0]))
    >>> Dataset(x=[0.5, 1.5, 2.5], y=[1, 0, 1])[1:]
    {'x': array([1.5, 2.5]), 'y': array([0, 1])}
    """

    @overload
    def __init__(self: "Dataset[Sample]", *arrays: npt.ArrayLike) -> None: ...
    @overload
    def __init__(self: "Dataset[NamedSample]", **named: npt.ArrayLike) -> None: ...
    def __init__(self, *arrays: npt.ArrayLike, **named: npt.ArrayLike) -> None:
        if arrays and named:
            raise DomainError("Dataset: expected arrays in turn or by name, got both")
        given: dict[Any, npt.ArrayLike] = named or dict(enumerate(arrays))
        if not given:
            raise ShapeError("Dataset: expected at least one array, got none")
        self._names = tuple(named) or None
        self._columns = [_read_only(as_array(value, f"Dataset: array {key!r}")) for key, value in given.items()]
        for key, column in zip(given, self._columns, strict=True):
            if column.ndim == 0:
                raise ShapeError(f"Dataset: array {key!r}: expected an axis of samples, got shape ()")
            if len(column) != len(self._columns[0]):
                raise ShapeError(f"Dataset: array {key!r}: expected {len(self._columns[0])} samples, got {len(column)}")
        self._rows: Indices | None = None
        self._maps: tuple[SampleMap, ...] = ()
        self._epoch = 0

    # ------------------------------------------------------------------ samples

    def __len__(self) -> int:
        return len(self._columns[0] if self._rows is None else self._rows)

    def __getitem__(self, index: int | slice | Array) -> S:
        """The samples at an index, a slice or an array of indices; IndexError outside the data set."""
        if self._rows is None:
            return self._formed([column[index] for column in self._columns])
        rows = self._rows[index]
        if not self._maps:
            return self._formed([column[rows] for column in self._columns])
        if rows.ndim == 0:
            return cast(S, self._mapped(rows.reshape(1))[0])
        return self._stacked(rows)

    @property
    def arrays(self) -> S:
        """All samples: the arrays themselves if nothing was chosen or mapped, else read and computed now."""
        return self[:]

    def at_epoch(self, k: int) -> Self:
        """The data set as epoch ``k`` sees it: the functions of `map` draw that epoch's random numbers."""
        epoch = epoch_number(k)
        return self._changed(_epoch=epoch) if any(each.seed is not None for each in self._maps) else self

    def map(self, fn: Callable[..., Any], *, seed: int | None = None) -> "Dataset[Any]":
        """The data set with a function of each sample, called whenever the sample is read.

        ``fn(*arrays)``, or ``fn(named)`` where samples have names, gets the arrays of one sample and returns those of
        the new one: a tuple, a dict, or one array. With a seed it gets a `SampleRandom` too, as its last argument:
        ``fn(*arrays, random)``. Its draws depend only on seed, epoch and sample, so an augmentation is the same in
        every run, whatever the batches. That does not hold for a function that draws elsewhere or depends on earlier
        calls. Indexing shows epoch 0; `at_epoch` others.

        Raises DomainError for a seed out of range. When samples are read, an error of ``fn`` gets a note of which
        sample it was; ShapeError, DTypeError or DomainError for samples of a batch that are not alike.

        >>> data = Dataset(np.arange(4.0), np.array([0, 1, 0, 1]))
        >>> data.map(lambda x, y: (x / 2, y))[:]
        (array([0. , 0.5, 1. , 1.5]), array([0, 1, 0, 1]))
        >>> noisy = data.map(lambda x, y, random: (x + random.normal(dtype=x.dtype), y), seed=0)
        >>> noisy.take(2)[:][0], noisy[1][0], noisy.at_epoch(1)[1][0]
        (array([-0.17434846,  0.16863911]), array(0.16863911), array(0.02350097))
        """
        rows = np.arange(len(self)) if self._rows is None else self._rows
        return self._changed(_rows=_read_only(rows), _maps=(*self._maps, SampleMap(fn, seed, len(self._maps))))

    # ------------------------------------------------------------------ other data sets

    def take(self, index: int | slice | npt.ArrayLike) -> Self:
        """The first ``index`` samples, or those of a slice, an array of indices or a mask, as a data set.

        Raises DomainError for a number below 0, IndexError for an index outside the data set.

        >>> data = Dataset(np.arange(5))
        >>> data.take(2)[:], data.take(slice(3, None))[:], data.take([4, 0])[:]
        ((array([0, 1]),), (array([3, 4]),), (array([4, 0]),))
        """
        if isinstance(index, Integral):
            index = slice(whole_number("take", "argument 'index'", index, least=0))
        chosen = np.arange(len(self))[index if isinstance(index, slice) else _as_index(index)]
        return self._of(chosen)

    def shuffle(self, seed: int) -> Self:
        """The samples in one fixed random order; ``batches(seed=…)`` makes a new one for each epoch.

        >>> Dataset(np.arange(5)).shuffle(seed=0)[:]
        (array([4, 0, 3, 2, 1]),)
        """
        return self._of(fixed_order(len(self), seed))

    def split(self, *shares: float, seed: int | None = None, stratify: npt.ArrayLike | None = None) -> tuple[Self, ...]:
        """The data set in parts, each sample in one of them.

        Args:
            shares: share of each part, between 0 and 1, or its number of samples. The remaining samples form one more
                part; after a single share there is always one.
            seed: of the choice of samples; None cuts the data set in order. Samples keep their order.
            stratify: a class for each sample, or anything that can be sorted; every part then has each class in
                proportion, as nearly as whole samples allow.

        Raises:
            DomainError: a share out of range, shares that come to more than there is, or an empty part.
            ShapeError: another number of classes.

        >>> data = Dataset(np.arange(10))
        >>> train, test = data.split(0.8, seed=0)
        >>> train[:], test[:]
        ((array([0, 2, 3, 4, 5, 6, 7, 9]),), (array([1, 8]),))
        >>> [len(part) for part in data.split(5, 3)]
        [5, 3, 2]
        """
        order = order_to_cut("split", len(self), seed, stratify)
        return tuple(self._of(part) for part in cut(order, part_sizes(len(self), shares)))

    def kfold(
        self, k: int, *, seed: int | None = None, stratify: npt.ArrayLike | None = None
    ) -> list[tuple[Self, Self]]:
        """``k`` pairs ``(train, test)``: each sample is tested once and trained on in all other pairs.

        Sizes of the test parts differ by one at most. ``seed`` and ``stratify`` are those of `split`.

        Raises DomainError unless ``2 <= k <= len(data)``, ShapeError for another number of classes.

        >>> [test[:][0].tolist() for train, test in Dataset(np.arange(5)).kfold(2)]
        [[0, 1, 2], [3, 4]]
        """
        order = order_to_cut("kfold", len(self), seed, stratify)
        folds = cut(order, fold_sizes(len(self), k))
        return [(self._of(np.setdiff1d(order, fold)), self._of(fold)) for fold in folds]

    def digest(self) -> str:
        """16 hex digits over the samples and their order, with which processes check that they have the same data.

        Of an array above 64 MiB, which may be a file, 64 samples count; of the functions of `map` name and seed.

        >>> data = Dataset(np.arange(5))
        >>> data.digest() == Dataset(np.arange(5)).digest() != data.shuffle(seed=0).digest()
        True
        """
        rows = [] if self._rows is None else [self._rows]
        return arrays_digest([*self._columns, *rows], [self._names, *(each.code for each in self._maps)])

    def batches(self, size: int, *, seed: int | None = None, drop_last: bool = False) -> "Batches[S]":
        """The data set in batches of ``size`` samples; see `Batches`."""
        return Batches(self, size, seed=seed, drop_last=drop_last)

    def __repr__(self) -> str:
        keys = [f"{name}=" for name in self._names] if self._names else [""] * len(self._columns)
        parts = zip(keys, self._columns, strict=True)
        arrays = ", ".join(f"{key}{column.dtype}{[len(self), *column.shape[1:]]}" for key, column in parts)
        return ".".join([f"Dataset({arrays})", *(each.name for each in self._maps)])

    @property
    def in_place(self) -> Samples[S] | None:
        """Its samples where they lie in the arrays; None where not each is one piece of memory, or is made by `map`."""
        if type(self) is not Dataset or self._maps or not all(column.flags.c_contiguous for column in self._columns):
            return None
        return Samples(self._columns, self._formed)

    def places(self, order: Indices) -> Indices:
        """Where the samples of an order lie in the arrays."""
        return order if self._rows is None else self._rows[order]

    # ------------------------------------------------------------------ how it is made

    def _of(self, chosen: Indices) -> Self:
        """The data set of these samples of this one."""
        return self._changed(_rows=_read_only(chosen if self._rows is None else self._rows[chosen]))

    def _changed(self, **fields: Any) -> Self:
        other = copy(self)
        vars(other).update(fields)
        return other

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Copies and pickles of read-only arrays can be written to."""
        vars(self).update(state, _columns=[_read_only(column) for column in state["_columns"]])

    def _formed(self, arrays: list[Array]) -> S:
        parts = tuple(map(np.asarray, arrays))
        return cast(S, parts if self._names is None else dict(zip(self._names, parts, strict=True)))

    def _mapped(self, rows: Indices) -> list[AnySample]:
        samples: list[AnySample] = [self._formed([column[row] for column in self._columns]) for row in rows]
        return applied(self._maps, samples, rows, self._epoch)

    def _stacked(self, rows: Indices) -> S:
        if rows.ndim != 1 or len(rows) == 0:
            raise DomainError(f"{self!r}: expected at least one sample, along one axis, got shape {rows.shape}")
        return cast(S, stacked(self._mapped(rows), lambda k: f"map: sample {rows[k]}"))


class Batches(Epochs[S]):
    """A data set cut into batches, epoch after epoch.

    Every ``iter()`` is the next epoch, and a fresh object starts at epoch 0, so two fresh objects made alike
    give the same sequence of batches. The order of epoch k is a permutation keyed by (seed, k).

    Args:
        dataset: where the samples come from.
        size: samples in a batch, at least 1.
        seed: key of the shuffles; None keeps the order of the data set in every epoch.
        drop_last: leave out a last batch of fewer samples.

    Raises:
        DomainError: ``size`` is not a whole number of at least 1, the seed is out of range, or an epoch would have
            no batch.

    >>> import numpy as np
    >>> [labels.tolist() for labels, in Dataset(np.arange(5)).batches(2)]
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, dataset: Dataset[S], size: int, *, seed: int | None = None, drop_last: bool = False) -> None:
        self.dataset, self.size, self.drop_last = dataset, whole_number("batches", "size", size), drop_last
        self.seed = None if seed is None else coordinate("batches", "seed", seed, SEEDS)
        if len(self) == 0:
            rule = f"at least {size} samples" if drop_last else "at least one sample"
            raise DomainError(f"batches: expected a data set of {rule}, got {len(dataset)}: no batch would be left")

    def __len__(self) -> int:
        """Batches in an epoch."""
        full, rest = divmod(len(self.dataset), self.size)
        return full + (rest > 0 and not self.drop_last)

    def epoch(self, k: int) -> Iterator[S]:
        """The batches of epoch ``k``, whatever was iterated before; ``iter()`` continues where it was.

        Raises DomainError if ``k`` is negative.
        """
        return self._batches(epoch_number(k), range(len(self)))

    def picked(self, k: int, wanted: Callable[[int], bool]) -> Iterator[S]:
        """The batches of epoch ``k`` whose number ``wanted`` takes; of the others no sample is read.

        >>> [labels.tolist() for labels, in Dataset(np.arange(5)).batches(2).picked(0, lambda number: number > 0)]
        [[2, 3], [4]]
        """
        return self._batches(epoch_number(k), filter(wanted, range(len(self))))

    def in_place(self, k: int) -> SampleBatches[S] | None:
        """The batches of epoch ``k`` as a sequence that is not read before; None where `Dataset.in_place` is."""
        samples = None if type(self) is not Batches else self._samples
        if samples is None:
            return None
        count = min(len(self) * self.size, len(self.dataset))
        return SampleBatches(samples, self.dataset.places(self._order(k))[:count], self.size)

    @cached_property
    def _samples(self) -> Samples[S] | None:
        return self.dataset.in_place

    def _order(self, k: int) -> Indices:
        n = len(self.dataset)
        return np.arange(n) if self.seed is None else permutation(n, seed=self.seed, step=k)

    def _batches(self, k: int, numbers: Iterable[int]) -> Iterator[S]:
        samples, size = self.dataset.at_epoch(k), self.size
        starts = (number * size for number in numbers)
        if self.seed is None:
            yield from (samples[start : start + size] for start in starts)
            return
        order = self._order(k)
        yield from (samples[order[start : start + size]] for start in starts)

    def digest(self) -> str:
        """16 hex digits over the data set, the size of batches and their order."""
        return arrays_digest([], [self.dataset.digest(), self.size, self.seed, self.drop_last])

    def __repr__(self) -> str:
        options = ["" if self.seed is None else f", seed={self.seed}", ", drop_last=True" if self.drop_last else ""]
        return f"Batches({self.dataset!r}, {self.size}{''.join(options)})"


def _as_index(index: npt.ArrayLike) -> Array:
    array = np.asarray(index)
    if array.ndim != 1:
        raise DomainError(f"take: argument 'index': expected indices along one axis, got shape {array.shape}")
    return array if array.size else array.astype(np.int64)


def _read_only(array: Array) -> Array:
    view = array.view()
    view.flags.writeable = False
    return view

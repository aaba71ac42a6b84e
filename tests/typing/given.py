"""What the programs of this folder are given: Dims of different sizes, a tape and some leaves."""

from typing import Any

import numpy as np

from dgrr.tape import AnyVar, Dim, Shape, Tape, Var, boolean, f32, f64, i64, nn


class Batch(Dim): ...


class In(Dim, size=4): ...


class Hid(Dim, size=3): ...


class Out(Dim, size=2): ...


class Twin(Dim, size=3): ...  # as large as Hid: only a type checker tells them apart


class Img(Dim): ...


class Ch(Dim, size=3): ...


class Ker(Dim, size=7): ...


class High(Dim): ...


class Wide(Dim): ...


class Flat(Dim): ...


class Words(Dim, size=9): ...


def ones(*shape: int) -> Any:
    return np.ones(shape, np.float32)


class Given:
    """A tape and leaves on it; ``g.g`` is gradual, ``g.other`` stands on another tape."""

    def __init__(self) -> None:
        self.t = t = Tape(f32)
        self.x = t.leaf(ones(5, 4), Shape[Batch, In])
        self.h = t.leaf(ones(5, 3), Shape[Batch, Hid])
        self.y = t.leaf(ones(5, 2), Shape[Batch, Out])
        self.s = t.leaf(np.float32(0.5), Shape[()])
        self.w = t.param(ones(3, 4), Shape[Hid, In])
        self.b = t.param(ones(3), Shape[Hid])
        self.u = t.param(ones(4, 3), Shape[In, Hid])
        self.sq = t.param(ones(4, 4), Shape[In, In])
        self.x3 = t.leaf(ones(6, 5, 4), Shape[Img, Batch, In])
        self.u3 = t.leaf(ones(6, 4, 3), Shape[Img, In, Hid])
        self.im = t.leaf(ones(6, 3, 8, 9), Shape[Img, Ch, High, Wide])
        self.k = t.param(ones(7, 3, 3, 3), Shape[Ker, Ch, Hid, Hid])
        self.table = t.param(ones(9, 4), Shape[Words, In])
        self.g = t.leaf(ones(4, 4))
        self.labels: Var[i64, Batch] = t.const([0, 1, 0, 1, 1], Shape[Batch])
        self.mask: Var[boolean, Batch, In] = t.const(np.ones((5, 4), bool), Shape[Batch, In])
        self.other = Tape(f64).leaf(np.ones((5, 4)), Shape[Batch, In])

    def params(self, model: nn.Layer) -> dict[str, AnyVar]:
        return self.t.params(model.init(seed=0))

    def run(self, model: object) -> None:
        """Apply a layer of whatever type to ``x``."""
        layer: Any = model
        layer(self.params(layer), self.x)

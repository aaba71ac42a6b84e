"""Parameters that two places of a model share."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ...errors import DomainError
from ...var.var import AnyVar
from ..context import Context
from ..layer import Layer, as_layer
from ..parameters import Parameter, Parameters
from ..scope import Params


@dataclass(frozen=True, init=False)
class Tied(Layer):
    """A model in which some parameters are others: ``Tied(model, {"2.weight": "0.weight"})`` has no ``2.weight``.

    The names of the model are kept. A shared parameter stands under one name, in ``init``, in traces and in what is
    saved; its gradient is the sum over its places.

    Source: Press and Wolf (2017), Using the output embedding to improve language models.
    Shapes: x as the model takes it -> as the model gives it
    Dtypes: those of the model.
    Raises:
        DomainError: a name is none of the model's, names itself, or stands for a parameter of another shape, or the
            one it stands for stands for a third.
        DTypeError: the model is no layer.

    >>> from dgrr.tape import nn
    >>> model = nn.Tied(nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 10)), {"1.weight": "0.weight"})
    >>> {name: a.shape for name, a in model.init(seed=0).items()}
    {'0.weight': (10, 4), '1.bias': (10,)}
    """

    model: Layer
    names: tuple[tuple[str, str], ...]

    def __init__(self, model: Layer, names: Mapping[str, str] | tuple[tuple[str, str], ...]) -> None:
        object.__setattr__(self, "model", as_layer("Tied: argument 'model'", model))
        object.__setattr__(self, "names", tuple(names.items()) if isinstance(names, Mapping) else names)
        self.__post_init__()
        self._require_shared()

    def _require_shared(self) -> None:
        have, shared = self.model.parameters(), dict(self.names)
        for name, source in self.names:
            for each in (name, source):
                if each not in have:
                    raise DomainError(
                        f"Tied: argument 'names': expected parameters among {', '.join(map(repr, have))}, got {each!r}"
                    )
            if source in shared:
                raise DomainError(f"Tied: argument 'names': expected a parameter that is kept, got {source!r}")
            if have[name].shape != have[source].shape:
                raise DomainError(
                    f"Tied: argument 'names': expected parameters of one shape, got {name!r} {have[name].shape} and "
                    f"{source!r} {have[source].shape}"
                )

    def own_parameters(self) -> Parameters:
        """Those of the model itself."""
        return self.model.own_parameters()

    def own_state(self) -> Parameters:
        """That of the model itself."""
        return self.model.own_state()

    def children(self) -> Mapping[str, Layer]:
        """The model's parts."""
        return self.model.children()

    def parameters(self) -> dict[str, Parameter]:
        """The model's, without those that are others."""
        shared = dict(self.names)
        return {name: p for name, p in self.model.parameters().items() if name not in shared}

    def __call__(self, p: Params, x: Any, ctx: Context | None = None, **more: Any) -> Any:
        """The model's output; ``more`` is what else the model takes by name."""
        return self.model(Shared(p, dict(self.names)), x, ctx, **more)


class Shared(Mapping[str, AnyVar]):
    """Parameters of which some are found under other names."""

    def __init__(self, p: Params, names: Mapping[str, str]) -> None:
        self._p, self._names = p, names

    def __getitem__(self, name: str) -> AnyVar:
        return self._p[self._names.get(name, name)]

    def __iter__(self) -> Iterator[str]:
        shared = (name for name, source in self._names.items() if source in self._p)
        return iter(dict.fromkeys((*self._p, *shared)))

    def __len__(self) -> int:
        return sum(1 for _ in self)

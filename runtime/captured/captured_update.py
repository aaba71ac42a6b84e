"""The update of a step alone, by gradients that are given: recorded once, then run from a fixed table."""

from collections.abc import Mapping

from ...base.arrays import Array, Arrays
from ...tape import DomainError
from ...tape.numerics.prepared.prepared_calls import Row
from ...tape.values.spec import Spec
from ..ir.builder import Builder
from ..ir.graph import Role, Value
from ..lower.bind import bind
from ..lower.compile import compile_graph
from ..lower.lower import stored
from ..step.recipe import Recipe


class CapturedUpdate:
    """What the rules of a recipe make of parameters and state, to the bit what `Groups.step` makes of them, in place.

    Args:
        recipe: whose rules they are; its clipping has been done.
        params, state: the arrays that are updated.
        grads: the arrays that gradients will lie in, by parameter; a parameter without one is not updated.

    Raises:
        DomainError: an op of a rule may refuse its numbers, after which a step would be half done.

    >>> import numpy as np
    >>> from dgrr.runtime.optim import SGD
    >>> params, grads = {"w": np.ones(2)}, {"w": np.array([1.0, 2.0])}
    >>> update = CapturedUpdate(Recipe(SGD(0.5)), params, SGD(0.5).init(params), grads)
    >>> update.run()
    >>> params["w"]
    array([0.5, 0. ])
    """

    def __init__(self, recipe: Recipe, params: Arrays, state: Arrays, grads: Arrays) -> None:
        builder = Builder(0)
        param_ids = _declared(builder, Role.PARAM, params)
        grad_ids = _declared(builder, Role.INPUT, grads)
        builder.update(param_ids, {param_ids[name]: id for name, id in grad_ids.items()}, recipe, state, {})
        plan = compile_graph(builder.graph("update", {}), builder.constants)
        if any(op.refusal for op in plan.program.ops):
            raise DomainError("CapturedUpdate: recipe: expected rules whose ops take any number, got one that refuses")
        outside = {id: params[name] for name, id in param_ids.items()}
        outside |= {id: grads[name] for name, id in grad_ids.items()}
        for id, value in plan.program.graph.values.items():
            if value.role is Role.STATE:
                outside[id] = state[value.name]
            elif value.role is Role.CONST:
                outside[id] = stored(builder.constants[id])[0]
        self._bound = bind(plan, outside)
        self.run = self._bound.run
        """Update everything once, by what lies in the gradients."""

    def rows(self) -> list[Row]:
        """The same, as part of a program."""
        return self._bound.rows.tolist()  # type: ignore[no-any-return]


def _declared(builder: Builder, role: Role, arrays: Mapping[str, Array]) -> dict[str, int]:
    """Enter arrays as values; their ids by name."""
    first = len(builder.values)
    named = enumerate(arrays.items(), first)
    return {name: builder.declare(Value(id, Spec(a.shape, a.dtype), role, name)) for id, (name, a) in named}

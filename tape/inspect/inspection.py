"""Looking at a tape: its nodes as a table and as a graph, what went wrong on it and where."""

from typing import Any, TypeVar

from ..errors import GradientError, TapeError
from ..graph.backward import DenseGrads
from ..graph.backward_passes import BackwardPasses
from ..graph.nonfinite import NonFiniteReport, first_value
from ..values.dtypes import DType
from ..values.tables import PlainTable
from ..var.var import AnyVar
from .dot import dot
from .explain import explain
from .summary import overview, summary

D = TypeVar("D", bound=DType)


class Inspection(BackwardPasses[D]):
    """What a tape says of itself; none of it changes the tape."""

    _kinds: dict[str, str]
    """What scopes are, by their dotted names: the classes of layers."""

    def __str__(self) -> str:
        return str(overview(f"Tape #{self.number}", self._nodes))

    def _repr_html_(self) -> str:
        """The first and the last nodes in a notebook."""
        return overview(f"Tape #{self.number}", self._nodes).to_html()

    def summary(self) -> PlainTable:
        """One row per node: id, name, op, shape, dtype, parents, bytes."""
        return summary(repr(self), self._nodes)

    def first_nonfinite(self) -> NonFiniteReport | None:
        """The first node whose value has an infinity or a NaN; None if there is none."""
        return first_value(self._nodes)

    def explain(self, key: AnyVar | int | str, grads: DenseGrads[Any] | None = None) -> PlainTable:
        """The nodes on the way from a node to the loss, with the norms of values and gradients.

        If no gradient arrives at the node, the title says why. The loss is the last node on the tape, or with
        ``grads`` the one they are the gradients of. Raises TapeError for a node that is not on the tape,
        GradientError if the last node is no scalar or ``grads`` are empty.
        """
        node = self.node(key)
        if grads is not None:
            return explain(self._nodes, node.id, grads)
        last = self._nodes[-1]
        if not last.requires_grad:
            return explain(self._nodes, node.id, [None] * len(self), last.id)
        if last.value.sizes != ():
            raise GradientError(
                f"explain: expected the last node to be a scalar loss, got {last.title} of shape {last.value.sizes}; "
                "give grads=tape.backward_dense(out, seed)"
            )
        return explain(self._nodes, node.id, self.backward_dense(last.id))

    def to_dot(self, grads: DenseGrads[Any] | None = None, collapse: int | None = None) -> str:
        """The graph in the DOT language, leaves as boxes.

        With ``grads`` nodes are coloured by the norm of their gradient, on a logarithmic scale. With
        ``collapse=n`` the nodes of a scope are drawn as one; names of scopes are cut to their first ``n`` parts. Such a
        box says the class of the layer, what goes in and comes out, how many nodes and parameters are inside, and the
        largest norm among its gradients.
        A node belongs to the `scope` that it was made in; else a leaf to the dotted prefix of its name ("0" of
        "0.weight"), and what an op makes to the scope of its latest parent that has one.
        Raises DomainError unless ``collapse`` is at least 1, TapeError if ``grads`` are of more nodes.
        """
        if grads is not None and len(grads) > len(self):
            raise TapeError(f"to_dot: argument 'grads': expected gradients of {len(self)} nodes, got {len(grads)}")
        return dot(self._nodes, grads, collapse, self._kinds)

"""A step of one rank among several: it computes its micro-batches and updates its shard; all end with equal bits."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from hashlib import sha256
from itertools import pairwise
from typing import Any, Self, cast

import numpy as np

from ...base.arrays import Array, Arrays
from ...tape import DomainError, ShapeError
from ..captured.kept import PLAN_BYTES, KeptPlans
from ..captured.replayed_step import Device, OnShapeChange, mirror_of, shown
from ..optim.averages import averaged
from ..optim.clip import clip_by_norms, clip_by_value, global_norm, tensor_norms
from ..step.batch import BatchSignature, batch_signature
from ..step.eager import Clipped, mean_metrics
from ..step.evaluate import NonFiniteError, evaluations
from ..step.loss_call import LossFn
from ..step.memory import in_one_block
from ..step.recipe import Recipe
from ..step.state_digest import state_digest
from ..step.training_step import LastStep, StateDict, TrainingStep, check_fits
from ..step.tree import range_of
from .agreement import digests, require_agreement
from .exchange import Exchange
from .gathered import Arena, StateShares, TreeOfRanks, from_first, gathered
from .packets import pack, unpack
from .shards import Piece, Shards, divisible, in_segments, spec_of
from .share import MODEL_STATE, PARAM, Share, SharePlan, eager_share


class RankedStep(TrainingStep):
    """A training step that several ranks do together, to the bit what one process does by the same recipe.

    Each rank is given its own micro-batches. It holds all parameters and the model's state, and of the optimizer's
    state that of the parameters in its shard. What is said of a call to be of all ranks is called by all of them, in
    the same order.

    Args:
        ranks: the others.
        device: where this rank computes its micro-batches; sums are exchanged, and updates done, by the CPU.

    Raises:
        DomainError: a recipe without ``order="tree"``, or more ranks than micro-batches. CudaError: no GPU.
    """

    instead = "make another on every rank, and load a checkpoint of the run into it"

    def __init__(
        self,
        loss_fn: LossFn,
        params: Arrays,
        recipe: Recipe,
        ranks: Exchange,
        *,
        model_state: Arrays | None = None,
        seed: int = 0,
        on_shape_change: OnShapeChange = "recapture",
        device: Device = "cpu",
        plan_bytes: int = PLAN_BYTES,
    ) -> None:
        if recipe.order != "tree":
            raise DomainError(
                "ranks: expected order='tree', which gives the same bits on any number of ranks, got "
                f"{recipe.order!r}; write Trainer(…, accumulate={recipe.accumulate}, order='tree', ranks=…)"
            )
        self._ranks, self._eager, self._on_shape_change = ranks, False, on_shape_change
        self._own = range_of(recipe.accumulate, ranks.rank, ranks.size)
        super().__init__(loss_fn, params, recipe, model_state, seed)
        read = {part: self._arrays[part] for part in ("params", "model_state")}
        self.mirror = mirror_of(read, device, ranks.local_rank)
        self._known = KeptPlans[SharePlan]("capture", plan_bytes)
        self._names: list[str] = []
        self._finite = True

    @property
    def own(self) -> range:
        """Which micro-batches of each step this rank computes."""
        return self._own

    # ------------------------------------------------------------------ memory

    def _hold(self, params: dict[str, Array], model_state: dict[str, Array]) -> None:
        """Parameters and model's state in one block, so arranged that all that steps change lies in front."""
        trained = {PARAM + name: a for name, a in params.items() if name not in self.groups.frozen}
        arena = trained | {MODEL_STATE + name: a for name, a in model_state.items() if a.dtype.kind == "f"}
        given = {PARAM + name: a for name, a in params.items()} | {MODEL_STATE + n: a for n, a in model_state.items()}
        block, copies = in_one_block(arena | {key: a for key, a in given.items() if key not in arena})
        self._arrays["params"] = {name: copies[PARAM + name] for name in params}
        self._arrays["model_state"] = {name: copies[MODEL_STATE + name] for name in model_state}
        specs = {key: spec_of(a) for key, a in arena.items()}
        may_be_cut = self._divisible()
        segments = [Shards(segment, may_be_cut, self._ranks.size) for segment in in_segments(specs)]
        self._tree = TreeOfRanks(self._ranks, self.recipe.accumulate)
        self._arena = Arena(self._ranks, segments, self._tree)
        self._block = block[: self._arena.nbytes]
        pieces = [self._params_in(rank) for rank in range(self._ranks.size)]
        self._states = StateShares(self._ranks, self.groups, self.params, pieces)
        self._arrays["state"] = self._states.state
        self._pieces = {piece.name: piece for piece in self._arena.pieces(self._ranks.rank)}
        own = pieces[self._ranks.rank]
        self._own_params = {name: piece.of(self.params[name]) for name, piece in own.items()}

    def _divisible(self) -> Callable[[str], bool]:
        """What in the arena may be cut."""
        may_be_cut = divisible(self.groups, self.recipe)
        return lambda key: may_be_cut(key.removeprefix(PARAM))

    def _params_in(self, rank: int) -> dict[str, Piece]:
        pieces = self._arena.pieces(rank)
        return {piece.name.removeprefix(PARAM): piece for piece in pieces if piece.name.startswith(PARAM)}

    # ------------------------------------------------------------------ the step

    def __call__(self, batch: tuple[Any, ...]) -> np.floating[Any]:
        """Train on the own micro-batches, with all ranks; the loss over those of all, taken before the update.

        Raises NonFiniteError on all ranks, and changes nothing, if the loss or a gradient is infinite or NaN and the
        recipe does not take such values. DomainError for another number of micro-batches, or if ranks have gradients of
        different parameters; what `CapturedStep` raises for a batch.
        """
        share = self._share(batch)
        means = self._arena.means(share.sums)
        finite = self._agree(share, finite=all(np.isfinite(array).all() for array in means.values()))
        loss = self._tree.mean(share.losses)
        self._finite = finite and bool(np.isfinite(loss))
        if not self._finite and self.recipe.on_nonfinite == "stop":
            raise self._not_finite(batch)
        metrics, self._names = self._shown(share), [*share.grads]
        self._compare()
        self._last = LastStep(loss, metrics, *self._clipped(_gradients(means)))
        self._update(means)
        return cast(np.floating[Any], loss[()])

    def _share(self, batch: tuple[Any, ...]) -> Share:
        if len(batch) != len(self.own):
            raise DomainError(f"batch: expected a tuple of this rank's {len(self.own)} micro-batches, got {len(batch)}")
        key = () if self._eager else batch_signature(batch)
        captures = self.mirror is not None or self._on_shape_change == "error"
        if not self._eager and (captures or self._known.is_worth(key)):
            return self._plan(batch, key)(batch, self._arena.begin)
        share = eager_share(self, batch, self.own.start)
        for segment in reversed(range(len(self._arena.names))):
            self._arena.begin(segment, share.sums)
        return share

    def _plan(self, batch: tuple[Any, ...], key: BatchSignature) -> SharePlan:
        plan = self._known.get(key)
        if plan is None:
            if self._on_shape_change == "error" and (known := next(iter(self._known), None)) is not None:
                raise ShapeError(f"step: batch: expected {shown(known.signature)} as captured, got {shown(key)}")
            plan = SharePlan(self, batch, key, self.own.start, self._arena, early=self._ranks.overlap)
            self._known.put(key, plan)
        return plan

    def _agree(self, share: Share, *, finite: bool) -> bool:
        """Whether all ranks have found finite means. Raises DomainError if they have not computed the same things."""
        names = [[*share.grads], [*share.state], *map(list, share.metrics[:1]), str(share.losses[0].dtype)]
        if any([*shown] != [*share.metrics[0]] for shown in share.metrics):
            raise DomainError("ranks: expected the loss function to return the same metrics for every micro-batch")
        code = int.from_bytes(sha256(repr(names).encode()).digest()[:7], "little")
        values = np.array([not finite, code, -code], np.int64)
        self._ranks.largest(values)
        if values[1] != -values[2]:
            raise DomainError(
                f"ranks: rank {self._ranks.rank}: expected gradients, changes of the model's state and metrics of the "
                f"same names on every rank, got here {names[:-1]}; let the loss of each micro-batch give the same ones"
            )
        return not values[0]

    def _not_finite(self, batch: tuple[Any, ...]) -> NonFiniteError:
        """What went wrong: in the words of an eager step if it was here."""
        point = replace(self.point, micro_batch=self.own.start)
        passes = evaluations(self.loss_fn, self.params, batch, point, self.groups.frozen, self.recipe.order)
        try:
            for made in passes:
                made.require_finite()
        except NonFiniteError as error:
            return error
        return NonFiniteError("a value or gradient of another rank's micro-batches, or a mean over all, is not finite")

    def _shown(self, share: Share) -> dict[str, float]:
        names = [*share.metrics[0]]
        if not names:
            return {}
        own = np.array([[made[name] for name in names] for made in share.metrics])
        counts = [len(range_of(self.recipe.accumulate, rank, self._ranks.size)) for rank in range(self._ranks.size)]
        every = gathered(self._ranks, own, counts)
        return mean_metrics([dict(zip(names, row, strict=True)) for row in every.tolist()])

    def _update(self, means: Arrays) -> None:
        """Apply the own pieces of the gradients, take over those of the model's state, and share all of it."""
        self._states.groups.step(self._own_params, self.consumed, self.state)
        for key, after in means.items():
            if key.startswith(MODEL_STATE):
                self._pieces[key].of(self.model_state[key.removeprefix(MODEL_STATE)])[...] = after
        self._arena.gather(self._block)

    def _compare(self) -> None:
        """Now and then all ranks compare the parameters that they have computed with.

        Afterwards nothing would be seen of memory that was changed: what is shared replaces it.
        """
        step = self.point.step
        if (step + 1) % self._ranks.check_every == 0:
            require_agreement(self._ranks, f"in step {step}", digests(self.params, "parameter"))

    def _clipped(self, grads: dict[str, Array]) -> Clipped:
        recipe = self.recipe
        if recipe.clip_value is not None:
            grads = clip_by_value(grads, recipe.clip_value)
        if recipe.clip_norm is None:
            return Clipped(grads, None, None)
        of_ranks = [[name for name in self._params_in(rank) if name in self._names] for rank in range(self._ranks.size)]
        norms = gathered(self._ranks, tensor_norms(grads), list(map(len, of_ranks)))
        places = {name: i for i, name in enumerate(name for own in of_ranks for name in own)}
        in_order = norms[[places[name] for name in self.params if name in places]]
        made = clip_by_norms(grads, recipe.clip_norm, in_order)
        return Clipped(made.grads, made.norm, made.scale)

    @property
    def is_finite(self) -> bool:
        """Whether loss and gradients of the last step were finite, on all ranks."""
        return self._finite

    @property
    def gradients_are_here(self) -> bool:
        """No: each rank has those of its shard."""
        return False

    def op_by_op(self) -> Self:
        """A step over the very arrays of this one that uses no captured plans."""
        other = type(self).__new__(type(self))
        vars(other).update(vars(self), _eager=True)
        return other

    def forget(self) -> None:
        """Drop every plan: the next batch is recorded anew."""
        self._known.clear()

    def require_same(self, when: str) -> None:
        """Raise CaptureError if ``loss_fn``, recorded once more, is not what the plans have run."""
        for plan in self._known:
            plan.require_same(when)

    # ------------------------------------------------------------------ the whole, for which all ranks are called

    def whole_arrays(self) -> StateDict:
        """As `TrainingStep.whole_arrays`: the whole on rank 0, of the optimizer's state the own share elsewhere."""
        return {**self.arrays, "state": self._states.collected()}

    def collected_gradients(self) -> dict[str, Array]:
        """As `TrainingStep.collected_gradients`."""
        whole = self._arena.collected({PARAM + name: grad for name, grad in self.consumed.items()})
        return {name: whole[PARAM + name] for name in self._names} if whole else {}

    def collected_batch(self, batch: tuple[Any, ...]) -> tuple[Array, ...]:
        """As `TrainingStep.collected_batch`."""
        packet = pack(batch)
        sizes = gathered(self._ranks, np.array([packet.nbytes]), [1] * self._ranks.size)
        bounds = [0, *np.cumsum(sizes).tolist()]
        whole = self._ranks.collect(packet, bounds)
        parts = [] if self._ranks.rank else [whole[start:stop] for start, stop in pairwise(bounds)]
        return tuple([array for part in parts for array in unpack(part)])

    def averages(self) -> dict[str, Array]:
        """The running averages of the parameters, and what is frozen: copies, on all ranks."""
        whole = np.zeros(self._arena.nbytes, np.uint8)
        of_all = self._arena.views(whole)
        for name, piece in self._params_in(self._ranks.rank).items():
            piece.of(of_all[PARAM + name])[...] = averaged(self._own_params, self.state)[name]
        self._arena.gather(whole)
        return {name: of_all.get(PARAM + name, array) for name, array in self.params.items()}

    def gradient_norm(self) -> float:
        """The joint norm of the gradients of the last step, which clipping has measured, or else is measured now."""
        if self.norm is not None:
            return self.norm
        norm = np.array(global_norm(self.collected_gradients()))
        return float(from_first(self._ranks, norm))

    def digest(self) -> str:
        """As `TrainingStep.digest`, of the whole."""
        found = np.zeros(64, np.uint8)
        whole = self.whole_arrays()
        if self._ranks.rank == 0:
            text = state_digest(whole["params"], whole["state"], whole["model_state"])
            found[:] = np.frombuffer(text.encode(), np.uint8)
        return from_first(self._ranks, found).tobytes().decode()

    def state_dict(self) -> StateDict:
        """A copy of `whole_arrays`."""
        return {part: {name: a.copy() for name, a in own.items()} for part, own in self.whole_arrays().items()}

    def load_state_dict(self, given: Mapping[str, Arrays]) -> None:
        """Take over a whole `state_dict`, to the bit. Raises StateError, and changes nothing, if it does not fit."""
        check_fits("params", self.params, given.get("params", {}))
        check_fits("state", self._states.specs, given.get("state", {}))
        check_fits("model_state", self.model_state, given.get("model_state", {}))
        for own, part in ((self.params, "params"), (self.model_state, "model_state")):
            for name, array in own.items():
                array[...] = given[part][name]
        self._states.take(given["state"])


def _gradients(means: Arrays) -> dict[str, Array]:
    return {key.removeprefix(PARAM): grad for key, grad in means.items() if key.startswith(PARAM)}

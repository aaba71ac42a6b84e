"""What the ranks of a fit compare before its first step: what they were asked for, and with what they begin."""

from collections.abc import Mapping, Sized
from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np

from ...base.computing import versions
from ..data import Dataset, Epochs
from ..ir.record import record_loss
from ..ir.recorded_graphs import loss_graph
from ..step.batch import batch_signature
from ..step.training_step import TrainingStep
from .agreement import digests, require_agreement
from .exchange import Exchange


def agree_on_run(
    ranks: Exchange, steps: int, settings: Mapping[str, object], data: Mapping[str, object], step: TrainingStep
) -> None:
    """Before a fit that goes on after so many steps: settings, batches, parameters and the model's state.

    So are the versions and sources that compute it. Raises AgreementError on all ranks where they differ.
    """
    entries = {name: f"{name} {version}" for name, version in versions().items()}
    entries |= {name: repr(value) for name, value in settings.items()}
    entries |= {name: _described(value) for name, value in data.items()}
    entries |= digests(step.params, "parameter") | digests(step.model_state, "model state")
    require_agreement(ranks, f"before step {steps}", entries)


def agree_on_program(ranks: Exchange, steps: int, step: TrainingStep, batch: tuple[Any, ...]) -> None:
    """Before the first step of a fit: the ops that the loss function records, with the constants in them.

    Nothing is compared of ranks that have batches of different shapes. Raises AgreementError on all ranks.
    """
    if not _are_alike(ranks, repr(batch_signature(batch[0]))):
        return
    recipe = replace(step.recipe, accumulate=1)
    recorded = record_loss(step.loss_fn, step.params, batch[0], recipe, step.model_state, step.seed)
    graph = loss_graph(recorded, len(recorded.tape))
    require_agreement(ranks, f"before step {steps}", {"program": f"{len(graph.nodes)} ops {graph.digest()[:16]}"})


def _are_alike(ranks: Exchange, text: str) -> bool:
    code = int.from_bytes(sha256(text.encode()).digest()[:7], "little")
    values = np.array([code, -code])
    ranks.largest(values)
    return bool(values[0] == -values[1])


def _described(data: object) -> str:
    """What is known of batches without iterating them."""
    if isinstance(data, Dataset | Epochs):
        return data.digest()
    return f"{type(data).__qualname__} of {len(data)}" if isinstance(data, Sized) else type(data).__qualname__

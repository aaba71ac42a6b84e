"""Writes a judge: a trace's training step as a library of C, the program that runs it, and the batches of the run."""

import struct
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ...base.arrays import Array
from ...base.errors import DgrrError
from ...base.runs.completed_step import of_group
from ...base.system import FilePath
from ...runtime import CapturedStep
from ...runtime.ir.values import gradient_name
from ...runtime.library.export import Library, export_library
from ...runtime.library.source import LibrarySource, Weights
from ...runtime.optim.rates.told_rate import ToldRate
from ...runtime.step.batch import batch_arrays
from ...tape import NUMERICS
from ..replaying.execution import Batches, Execution, LossFn
from ..replaying.recorded_recipe import CannotPrepareError, RulesOfSteps, recorded_recipe
from ..replaying.replay_state import ReplayState, Rules, by_name
from ..v2.format.constants import TensorRole
from ..v2.format.digest import batch_arrays as digested_arrays
from ..v2.read.reader import TraceReader, open_reader
from .plan import HASHES, PlannedStep, plan_text, rate_name

SOURCES = ("judge.c", "bytes.h", "alone.h")

WASM = (
    "-ffreestanding -nostdlib -Wl,--no-entry,--allow-undefined,--export=__heap_base,--stack-first,-z,stack-size=1048576"
)
"""For a module whose host is ``judge.mjs``; a stack that is too small ends it, and overwrites nothing."""


class JudgeError(DgrrError, ValueError):
    """A run of which no judge can be written: the text says what of it."""


@dataclass(frozen=True)
class Judge:
    """What was written: for each target the compiled steps, one for each shape of batches."""

    folder: Path
    steps: int
    libraries: dict[str, list[Library]]


def command(target: str) -> str:
    """What compiles the program of a judge, in its folder.

    >>> command("aarch64")
    'cc -std=c99 -O2 -Iaarch64 judge.c aarch64/*.o -o judge'
    """
    sources = f"-std=c99 -O2 -I{target} judge.c {target}/*.o"
    if target.startswith("wasm"):
        return f"clang --target=wasm32 {WASM} {sources} -o {target}/judge.wasm"
    return f"cc {sources} -o judge"


@dataclass(frozen=True)
class _WithGradients:
    """A captured step whose library also gives gradients and the scale of clipping, and is told rates."""

    step: CapturedStep
    outputs: dict[str, str]
    told: Sequence[Array]

    def library_source(self, weights: Weights) -> LibrarySource:
        """As of the step."""
        source = self.step.library_source(weights)
        found = {
            id: (rate_name(i), told)
            for i, told in enumerate(self.told)
            for id, array in source.constants.items()
            if np.shares_memory(array, told)
        }
        return replace(source, outputs=self.outputs, held={**source.held, **found})


def write_judge(
    path: FilePath,
    folder: str | Path,
    loss_fn: LossFn,
    batches: Batches,
    *,
    target: str | Sequence[str] = "x86-64-v3",
    rules: Rules = (),
) -> Judge:
    """Write a program in C that recomputes the steps of a trace, and the compiled steps and batches that it needs.

    ``folder`` gets ``judge.c`` with its headers, ``plan.h``, ``batches.bin`` and for each target a folder with
    ``step_0.o``, ``step_0.h``, and so on, one for each shape of batches; for WebAssembly also ``judge.mjs``, which runs
    it in a page or in node. It answers as `replay` with the model does.

    Args:
        path: a trace with at least one step.
        folder: a folder, made if it is missing.
        loss_fn, batches, rules: as for `replay`.
        target: as for `export_library`.

    Raises:
        JudgeError: no steps, another numerics version, or a run that does what no judge does.
        TraceFileError: the trace cannot be read.
        LibraryError, DomainError: as `export_library`.
    """
    with open_reader(path) as trace:
        _require_able(trace)
        step, told, rates = _captured(trace, loss_fn, rules)
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        made = dict[tuple[Any, ...], dict[str, PlannedStep]]()
        with (folder / "batches.bin").open("wb") as file:
            for names, arrays, batch in _batches(trace, loss_fn, batches):
                key = names, *((array.shape, array.dtype) for array in arrays)
                if key not in made:
                    made[key] = _compiled(trace, step, told, batch, names, arrays, folder, target, len(made))
                _write_batch(file, list(made).index(key), arrays)
        planned = list(made.values())
        alike = [next(iter(each.values())) for each in planned]  # of every target
        (folder / "plan.h").write_text(plan_text(trace, alike, rates, NUMERICS))
        judge = Judge(folder, len(trace), {t: [each[t].library for each in planned] for t in planned[0]})
        runner = ["judge.mjs"] if any(each.startswith("wasm") for each in judge.libraries) else []
        for name in (*SOURCES, HASHES[trace.header.algorithm][0], *runner):
            (folder / name).write_text(Path(__file__).with_name(name).read_text())
        return judge


def _require_able(trace: TraceReader) -> None:
    if not len(trace) or not trace.has_keyframe(0) or not trace.header.mode.has_keyframes:
        raise JudgeError(f"judge: {trace.path}: expected a recorded state and at least one step; record a run first")
    if trace.header.numerics != NUMERICS:
        raise JudgeError(
            f"judge: {trace.path}: recorded under numerics version {trace.header.numerics}, this library has "
            f"{NUMERICS}; use the version of dgrr that recorded it"
        )


def _captured(
    trace: TraceReader, loss_fn: LossFn, rules: Collection[Any]
) -> tuple[CapturedStep, list[Array], list[int]]:
    """The step of a trace, the rates that it is told, and the places of these among the hyperparameters."""
    known, view = RulesOfSteps(trace, by_name(rules)), (first := trace[0])
    try:
        groups = known.of(first)
        for view in trace:
            groups = known.of(view)
    except CannotPrepareError:
        raise JudgeError(
            f"judge: {trace.path}: step {view.step}: a hyperparameter changes that is no rate; one compiled step does "
            "all steps, so only rates may change"
        ) from None
    told = {
        group.number: rate for group in groups.groups if isinstance(rate := getattr(group.rule, "lr", None), ToldRate)
    }
    places = [trace.hyperparameters.index(of_group("lr", number)) for number in told]
    state = ReplayState(trace, trace.keyframe(0), rules)
    params, buffers = state.of_role(TensorRole.PARAM), state.of_role(TensorRole.BUFFER)
    recipe = recorded_recipe(trace, first, groups, "record")
    step = CapturedStep(loss_fn, params, recipe, model_state=buffers, seed=trace.header.seed)
    step.load_state_dict({"params": params, "state": state.of_role(TensorRole.STATE), "model_state": buffers})
    return step, [rate.vector for rate in told.values()], places


def _batches(
    trace: TraceReader, loss_fn: LossFn, batches: Batches
) -> Iterator[tuple[tuple[str, ...], list[Array], Any]]:
    """Of each step the names and arrays of its batch as they are digested, and the batch."""
    execution = Execution(trace, loss_fn, batches)
    for view in trace:
        taken = execution.take(view)
        if taken is None:
            raise JudgeError(f"judge: step {view.step}: there are no more batches; pass those of the run")
        names, arrays = digested_arrays(execution.recorded(taken))
        yield tuple(name.decode() for name in names), list(arrays), taken[0] if len(taken) == 1 else taken


def _compiled(
    trace: TraceReader,
    step: CapturedStep,
    told: Sequence[Array],
    batch: Any,
    names: Sequence[str],
    arrays: Sequence[Array],
    folder: Path,
    target: str | Sequence[str],
    number: int,
) -> dict[str, PlannedStep]:
    """The step for batches of one shape, for each target."""
    plans = step.bind(batch)
    graph, _ = plans.recorded
    outputs, grads = {"loss": "loss"}, dict[str, int]()
    for i, (name, id) in enumerate(plans.recording.params.items()):
        if gradient_name(id) in graph.outputs:
            grads[name] = len(outputs)
            outputs[f"grad{i}"] = gradient_name(id)
    clip = len(outputs) if "clip" in graph.outputs else -1
    if clip > 0:
        outputs["clip"] = "clip"
    made = export_library(_WithGradients(step, outputs, told), folder, target=target, name=f"step_{number}")
    order = [next(i for i, array in enumerate(arrays) if array is one) for one in map(np.asarray, batch_arrays(batch))]
    for library in made.values():
        _require_dtypes(library, [arrays[i] for i in order], trace)
    return {name: PlannedStep(library, names, order, grads, clip) for name, library in made.items()}


def _require_dtypes(library: Library, arrays: Sequence[Array], trace: TraceReader) -> None:
    for told, array in zip(library.facts["inputs"], arrays, strict=True):
        if told["dtype"] != str(array.dtype):
            raise JudgeError(
                f"judge: {trace.path}: a batch holds {array.dtype}, which a step takes as {told['dtype']}; "
                "a judge takes batches of float32, float64, int64 and bool as they were recorded"
            )


def _write_batch(file: BinaryIO, which: int, arrays: Sequence[Array]) -> None:
    """One batch: number of the compiled step, zero, and the elements of its arrays."""
    file.write(struct.pack("<II", which, 0))
    for array in arrays:
        file.write(np.ascontiguousarray(array).tobytes())

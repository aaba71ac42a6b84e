"""The text beside a golden file: what a reviewer reads of it in a diff. It follows from the file alone."""

import re
from collections.abc import Iterator
from pathlib import Path

from ..v2.read.reader import TraceReader, open_reader
from ..v2.read.step_view import StepView

_HYPERPARAMETERS, _TENSORS, _LOSSES = 10, 40, 40

_RENAMED = {"chain     ": "state chain  ", "state     ": "state root   "}
"""Beginnings of lines as files have them that were written before these names."""

_DIGEST = re.compile(r"^(  .*\]) +[0-9a-f]{32}$")
"""The line of a tensor up to its digest, which files have not that were written before these."""


def sidecar(path: Path) -> str:
    """The sidecar of a trace: at most 100 lines, of the same text on every machine.

    Raises InvalidTraceError for a file that is damaged.
    """
    with open_reader(path) as trace:
        lines = [*_about(trace), "", *_tensors(trace), "", *_losses(trace)]
    return "\n".join(lines).rstrip() + "\n"


def agrees(text: str, path: Path) -> bool:
    """Whether a sidecar is the one of a trace, perhaps with the old names or without any digest of a tensor.

    Ends of lines are as a checkout made them.
    """
    lines = sidecar(path).splitlines()
    return [_renamed(line) for line in text.splitlines()] in (lines, [_DIGEST.sub(r"\1", line) for line in lines])


def _renamed(line: str) -> str:
    return next((new + line.removeprefix(old) for old, new in _RENAMED.items() if line.startswith(old)), line)


def _about(trace: TraceReader) -> Iterator[str]:
    """What is known of the whole run, one line each."""
    last = trace[-1].link.hex() if len(trace) else "no steps"
    root = trace.seal.final[-1].hex() if trace.seal is not None and trace.seal.final else "not recorded"
    yield f"golden trace of {_counted(len(trace), 'step')}"
    yield f"state chain  {last}"
    yield f"state root   {root}"
    yield f"numerics  {trace.header.numerics}"
    yield f"seed      {trace.header.seed}"
    yield from (f"rule      {group.rule}" for group in trace.schema.groups)
    if len(trace):
        yield from _hyperparameters(trace[0])


def _hyperparameters(first: StepView) -> Iterator[str]:
    shown = list(first.hyper.items())[:_HYPERPARAMETERS]
    yield from (f"  {name:<12} {value!r}" for name, value in shown)


def _tensors(trace: TraceReader) -> Iterator[str]:
    """Name, role, dtype and shape of each, and its digest after the last step where that is known."""
    tensors = trace.schema.tensors
    shown = tensors[:_TENSORS]
    name = max((len(t.name) for t in shown), default=0)
    shape = max((len(str(list(t.shape))) for t in shown), default=0)
    final = () if trace.seal is None else trace.seal.final
    yield _counted(len(tensors), "tensor")
    for i, t in enumerate(shown):
        line = f"  {t.name:<{name}}  {t.role.name.lower():<6} {t.dtype:<4} {list(t.shape)!s:<{shape}}"
        yield f"{line}  {final[i].hex()}" if final else line.rstrip()
    if len(tensors) > len(shown):
        yield f"  and {len(tensors) - len(shown)} more"


def _losses(trace: TraceReader) -> Iterator[str]:
    """The loss curve: every step of a short run, else steps at equal distances with the first and the last."""
    count = len(trace)
    shown = (
        sorted({round(i * (count - 1) / (_LOSSES - 1)) for i in range(_LOSSES)}) if count > _LOSSES else range(count)
    )
    losses = trace.loss
    yield "loss"
    for step in shown:
        yield f"  {step:>6}  {losses[step]!s:<24} {losses[step].item().hex()}"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"

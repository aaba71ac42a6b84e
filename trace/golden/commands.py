"""Golden traces without a test runner: a function that trains, recorded to a golden file, and held against one."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from ...base.system import FilePath
from ..comparing.compare import compare
from ..comparing.policy import Policy, PolicyLike
from ..comparing.result import Comparison
from .keeping import Outcome, keep, require_sidecar
from .marker import Marker
from .recording import GoldenRecording

Train = Callable[[GoldenRecording], object]
"""What trains with what it is given as ``trace=``."""


def record(path: FilePath, train: Train, *, policy: "PolicyLike | None" = None) -> Outcome:
    """Record what a function trains to a golden file, with its text beside it.

    A file with which the run agrees stays as it is. Says whether it was "written" anew, "updated", "verified"
    or "verified in part", where digests differ of which it has no values.

    Raises:
        DomainError: a policy that there is not.
        GoldenError: the function recorded nothing, or the file cannot be written.
    """
    with TemporaryDirectory(prefix="dgrr-golden-") as folder:
        made = _recorded(Path(folder), Path(path), train, policy)
        return keep(Path(path), made.path, made.policy, "all", write_missing=True)


def check(path: FilePath, train: Train, *, policy: "PolicyLike | None" = None) -> Comparison:
    """Record what a function trains, and compare it with a golden file.

    A file that is missing or damaged is a verdict too.

    Raises:
        DomainError: a policy that there is not.
        GoldenError: the function recorded nothing, or the text beside the golden file is not its own.

    >>> import numpy as np
    >>> from dgrr.runtime import SGD, Trainer
    >>> def train(trace):
    ...     trainer = Trainer(lambda p, x: (p["w"] * x).sum(), {"w": np.ones(2)}, SGD(0.5), trace=trace)
    ...     trainer.fit([np.array([3.0, 4.0])], progress=False)
    >>> with TemporaryDirectory() as folder:
    ...     record(Path(folder) / "tiny.dgrr", train), check(Path(folder) / "tiny.dgrr", train).same
    ('written', True)
    """
    with TemporaryDirectory(prefix="dgrr-golden-") as folder:
        made = _recorded(Path(folder), Path(path), train, policy)
        comparison = compare(path, made.path, policy=made.policy, proven=True)
    if comparison.same:
        require_sidecar(Path(path))
    return comparison


def _recorded(folder: Path, path: Path, train: Train, policy: "PolicyLike | None") -> GoldenRecording:
    """The run of a function, in a file of its own."""
    marker = Marker(None if policy is None else Policy.parse(policy), "every")
    made = GoldenRecording(folder / path.name, path.stem, marker)
    train(made)
    made.require_sealed()
    return made

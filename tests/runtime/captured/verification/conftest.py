"""Captured steps to verify, and the surgery that breaks one thing in them."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from dgrr.runtime import Adam, CapturedStep, capture
from dgrr.runtime.captured.plans import Executable, Kind, Plans
from dgrr.runtime.captured.verification.report import CheckError
from dgrr.runtime.captured.verification.subject import Subject
from dgrr.runtime.captured.verification.verify import CHECKS
from dgrr.runtime.ir import IRGraph
from dgrr.runtime.lower.bind import Bound, bind
from dgrr.runtime.lower.plan import BindingPlan, plan
from dgrr.runtime.lower.program import LoweredOp, Program
from dgrr.runtime.optim import Rule
from dgrr.tape import nn, ops
from dgrr.tape.numerics.engine.kernel import KERNELS

Array = npt.NDArray[Any]
MODEL = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2))


def loss_fn(p: Any, batch: Any) -> Any:
    inputs, targets = batch
    return ops.mse_loss(MODEL(p, inputs), targets)


def make_batch(seed: int = 0) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    return rng.standard_normal((6, 3)).astype(np.float32), rng.standard_normal((6, 2)).astype(np.float32)


def make_step(rule: Rule | None = None, loss: Any = loss_fn, **options: Any) -> CapturedStep:
    step = capture(loss, MODEL.init(seed=0), rule or Adam(1e-2), make_batch(), **options)
    for seed in range(3):
        step(make_batch(seed))
    return step


@dataclass
class Patient:
    """A step, one of its plans to operate on, and what one check says of it."""

    step: CapturedStep
    kind: Kind = "step"

    @property
    def plans(self) -> Plans:
        return self.step.record(make_batch())

    @property
    def bound(self) -> Bound:
        return self.plans.executable(self.kind).bound

    @property
    def program(self) -> Program:
        return self.bound.plan.program

    def op(self, kernel: str) -> int:
        """The position of the first op of a kernel."""
        return next(i for i, op in enumerate(self.program.ops) if op.kernel.name == kernel)

    def put(self, changed: BindingPlan) -> None:
        """Bind another plan in place of the step's."""
        outside = {
            root: memory
            for root, memory in self.bound.memory.items()
            if not changed.program.is_static(root) and root not in changed.program.groups
        }
        made = Executable(bind(changed, outside), self.plans.recording)
        self.plans.__dict__[self.kind] = self.plans.ready[self.kind] = made

    def reprogram(self, program: Program) -> None:
        """Plan and bind another program in place of the step's."""
        self.put(plan(program, in_place=True))

    def replace_op(self, i: int, **changes: Any) -> None:
        changed: list[LoweredOp] = list(self.program.ops)
        changed[i] = replace(changed[i], **changes)
        self.reprogram(self.program.with_ops(changed))

    def drop_op(self, i: int) -> None:
        """Leave an op out; all memory stays as it was planned."""
        given = self.bound.plan
        ops = [op for j, op in enumerate(self.program.ops) if j != i]
        parts = given.parts[:i] + given.parts[i + 1 :]
        scratch = {j - (j > i): block for j, block in given.scratch.items() if j != i}
        self.put(replace(given, program=self.program.with_ops(ops), parts=parts, scratch=scratch))

    def regraph(self, graph: IRGraph) -> None:
        """Put another graph behind the program."""
        self.put(replace(self.bound.plan, program=replace(self.program, graph=graph)))

    def break_kernel(self, kernel: str, other: str) -> int:
        """Let an op call another kernel for the same table and words; its position."""
        i = self.op(kernel)
        self.replace_op(i, kernel=KERNELS[other])
        return i

    def check(self, name: str, replays: int = 3) -> str:
        """What a check finds wrong, alone and in a whole verification; fails if it finds nothing."""
        before = self.step.digest()
        with pytest.raises(CheckError) as caught:
            CHECKS[name](subject := Subject(self.step, self.plans, replays))
        subject.restore()
        report = self.step.verify(replays)
        failed = {check.name: check.detail for check in report.failures}
        assert failed[name] == str(caught.value)
        assert f"[FAIL] {name}: {caught.value}" in str(report)
        assert self.step.digest() == before
        return str(caught.value)

    def failed(self, replays: int = 3) -> set[str]:
        """The checks that fail."""
        return {check.name for check in self.step.verify(replays).failures}


@pytest.fixture
def patient() -> Patient:
    """A step of a small model after three steps of training, compiled without fusion: every node has an op."""
    return Patient(make_step(without_passes=("epilogues", "grouped-updates", "unit-factors")))


@pytest.fixture
def fused() -> Patient:
    """The same with all passes."""
    return Patient(make_step())


@pytest.fixture
def step_of() -> Callable[..., CapturedStep]:
    """A step of the same model: rule, loss function and options of `capture` may be given."""
    return make_step


@pytest.fixture
def patient_of() -> Callable[..., Patient]:
    """The same, ready for surgery."""
    return lambda *args, **options: Patient(make_step(*args, **options))


@pytest.fixture
def batch() -> tuple[Array, Array]:
    """A batch of the model's signature."""
    return make_batch()

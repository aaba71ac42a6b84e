"""Two runs that part at some step: they are trained again up to it, and the first op is named."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dgrr.base.errors import DomainError
from dgrr.trace import Cause, Keep, Verdict, bisect_torch, record_torch

from .pytorch_runs import batches, network, torch

Train = Callable[[Any], None]
AT, STEPS = 5, 8
"""The step that is changed, of so many."""


def masked(x: Any, row: int) -> Any:
    """A batch without one of its rows."""
    mask = torch.ones(6, 1)
    mask[row] = 0.0
    return x * mask


def trains(
    trained: list[int] | None = None,
    *,
    steps: int = STEPS,
    slope: float = 0.01,
    row: int = 0,
    lr: float = 0.1,
    changed: int = AT,
    make: Any = torch.optim.SGD,
) -> Train:
    """A training in which a step and those behind it are told something else; `trained` gets the numbers of steps."""

    def train(trace: Any) -> None:
        model = network()
        optimizer = make(model.parameters(), lr=0.1)
        with record_torch(model, optimizer, trace) as run:
            for k, (x, y) in enumerate(batches(steps)):
                if trained is not None:
                    trained.append(k)
                late = k >= changed
                optimizer.param_groups[0]["lr"] = lr if late else 0.1
                hidden = model[0](masked(x, row if late else 0))
                hidden = torch.nn.functional.leaky_relu(hidden, slope if late else 0.01)
                optimizer.zero_grad()
                run.loss(torch.nn.functional.cross_entropy(model[2](hidden), y), batch=(x, y)).backward()
                optimizer.step()

    return train


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Traces of the run that is right and of changed ones, without calls of ops."""
    folder = tmp_path_factory.mktemp("runs")
    trains()(folder / "right")
    trains(slope=0.011)(folder / "slope")
    trains(row=1)(Keep(folder / "row", record="digest"))
    trains(lr=0.2)(folder / "lr")
    return folder


def test_an_option_that_changes_late_is_named(recorded: Path) -> None:
    steps = list[int]()
    found = bisect_torch(
        recorded / "right", recorded / "slope", train_a=trains(steps), train_b=trains(steps, slope=0.011)
    )
    assert found.cause is not None and found.call is not None
    assert (found.step, found.call.change.value, found.call.call.name) == (AT, "told", "aten.leaky_relu.default")
    assert found.call.was is not None, "an option that is the default is not written"
    assert (found.call.was.options, found.call.call.options) == ("", "negative_slope=0.011")
    assert "torch.nn.functional.leaky_relu(" in found.call.call.place
    assert (found.a, found.b) == (str(recorded / "right"), str(recorded / "slope"))
    assert steps == [*range(AT + 1)] * 2, "each run is left behind the step"
    assert found.notes[-2:] == ["trained again, 6 steps: a", "trained again, 6 steps: b"]
    assert found.losses is not None and found.tensors[0].recorded


def test_a_row_of_a_mask_is_named_by_what_it_is_made_with(recorded: Path) -> None:
    found = bisect_torch(recorded / "right", recorded / "row", train_a=trains(), train_b=trains(row=1))
    assert found.call is not None and found.step == AT
    assert (found.call.call.name, found.call.call.phase) == ("aten.select.int", "forward")
    assert "index=1" in found.call.call.options and "mask[row] = 0.0" in found.call.call.place


@pytest.mark.parametrize("make", [torch.optim.SGD, torch.optim.RMSprop])
def test_one_recorded_run_is_held_against_what_is_trained_now(tmp_path: Path, make: Any) -> None:
    trains(make=make)(Keep(tmp_path / "a", state_every=4))
    steps = list[int]()
    train = trains(steps, make=make, slope=0.5)
    found = bisect_torch(tmp_path / "a", train_a=trains(make=make), train_b=train)
    assert found.call is not None and (found.step, found.call.call.options) == (AT, "negative_slope=0.5")
    assert steps == [*range(AT + 1)] * 2, "first up to another loss, then with its calls"
    assert found.b.endswith("train, trained now")


def test_calls_that_are_recorded_are_not_made_again(tmp_path: Path, recorded: Path) -> None:
    class WithCalls:
        level = "op"

        def open_recorder(self, run: Any) -> Any:
            from dgrr.trace import open_recorder

            return open_recorder(Keep(tmp_path / "a", ops=(AT,)), run)

    trains()(WithCalls())
    found = bisect_torch(tmp_path / "a", recorded / "slope", train_b=trains(slope=0.011))
    assert found.call is not None and found.call.call.options == "negative_slope=0.011"
    assert found.notes[-1] == "trained again, 6 steps: b"


def test_what_no_op_makes_is_not_trained_again(recorded: Path) -> None:
    found = bisect_torch(recorded / "right", recorded / "lr")
    assert (found.cause, found.step, found.settings) == (Cause.RULE, AT, {"lr": (0.1, 0.2)})
    assert "nothing was trained again: no op makes that differ" in found.notes
    assert bisect_torch(recorded / "right", recorded / "right").same


def test_what_cannot_be_told_is_said(recorded: Path, tmp_path: Path) -> None:
    def notes(train_a: Any) -> str:
        found = bisect_torch(recorded / "right", recorded / "slope", train_a=train_a, train_b=trains(slope=0.011))
        assert found.verdict is Verdict.DIVERGED and found.step == AT and found.call is None
        return found.notes[-1]

    right = recorded / "right"
    said = "which op it was is unproven: "
    assert notes(None) == f"{said}{right} holds no calls of ops of step {AT}: give train_a=…"
    assert notes(trains(steps=3)) == (
        f"{said}train_a does not train {right} again: it ended after 3 steps, before step {AT}"
    )
    assert notes(trains(changed=2, slope=0.3)).startswith(
        f"{said}train_a does not train {right} again: step 2 is the first that differs"
    )
    assert bisect_torch(tmp_path / "none", train_b=trains()).verdict is Verdict.IO


def test_wrong_arguments_are_refused(recorded: Path) -> None:
    with pytest.raises(DomainError, match="^bisect_torch: expected the trace 'b' or the function 'train_b', got"):
        bisect_torch(recorded / "right")
    with pytest.raises(DomainError, match="argument 'b': expected a file, got the folder .*; give the file of"):
        bisect_torch(recorded / "right", recorded)
    with pytest.raises(DomainError, match="argument 'train_b': expected it to record its run where it is told, got"):
        bisect_torch(recorded / "right", train_b=lambda trace: None)

    def twice(trace: Any) -> None:
        trains(steps=1)(trace)
        trains(steps=1)(trace)

    with pytest.raises(DomainError, match="argument 'train_b': expected one run, got a second record_torch"):
        bisect_torch(recorded / "right", train_b=twice)


def adam(params: Any) -> Any:
    """Params of two groups, one with a step size of its own."""
    weight, *others = params
    return torch.optim.AdamW([{"params": [weight], "lr": 0.02}, {"params": others}], lr=0.01)


def momentum(params: Any) -> Any:
    """A buffer that is not there before its first step."""
    return torch.optim.SGD(params, lr=0.1, momentum=0.9, dampening=0.5)


MAKES = [adam, momentum, torch.optim.RMSprop, torch.optim.Muon]


def goes_on(
    trained: list[int] | None = None, *, make: Any = adam, factor: float = 1.0, scaled: bool = False, ask: bool = True
) -> Train:
    """A training with dropout and a schedule, which begins from a recorded state where it is asked to."""

    def train(trace: Any) -> None:
        torch.manual_seed(3)
        model = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.5))
        model.append(torch.nn.Linear(8, 3))
        matrices = [param for param in model.parameters() if param.ndim == 2]
        optimizer = make(matrices if make is torch.optim.Muon else model.parameters())
        scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
        scaler = torch.amp.GradScaler("cpu", init_scale=2.0, growth_interval=3, enabled=scaled)
        with record_torch(model, optimizer, trace) as run:
            for k, (x, y) in enumerate(batches(STEPS)):
                if ask and run.skips(scaler):
                    scheduler.step()
                    continue
                if trained is not None:
                    trained.append(k)
                optimizer.zero_grad()
                loss = torch.nn.functional.cross_entropy(model(x) * (factor if k >= AT else 1.0), y)
                scaler.scale(run.loss(loss, batch=(x, y))).backward()
                scaler.step(optimizer)
                scaler.update()
                scheduler.step()

    return train


def keyframes(path: Path, every: int = 2) -> Keep:
    """A trace of digests, with states to begin from."""
    return Keep(path, record="digest", keyframe_every=every)


@pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler.step")
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("make", MAKES)
def test_training_begins_from_the_state_before_the_step(tmp_path: Path, make: Any, scaled: bool) -> None:
    runs = {name: {"make": make, "scaled": scaled, "factor": f} for name, f in (("a", 1.0), ("b", 1.5))}
    for name, options in runs.items():
        goes_on(**options)(keyframes(tmp_path / name))
    steps = list[int]()
    a, b = (goes_on(steps, **options) for options in runs.values())
    found = bisect_torch(tmp_path / "a", tmp_path / "b", train_a=a, train_b=b)
    assert found.call is not None and (found.step, found.cause) == (AT, Cause.GRADIENT)
    assert (found.call.call.name, found.call.call.options) == ("aten.mul.Tensor", "other=1.5")
    assert steps == [AT - 1, AT] * 2, "no step before the last state is trained"
    assert found.sentence.startswith(f"from step {AT - 1} on, step {AT} is the first that differs: from equal")
    assert found.notes[-2:] == ["trained again, 2 steps: a", "trained again, 2 steps: b"]


@pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler.step")
def test_a_loop_that_does_not_ask_is_trained_from_its_beginning(tmp_path: Path) -> None:
    goes_on()(keyframes(tmp_path / "a"))
    goes_on(factor=1.5)(keyframes(tmp_path / "b"))
    asking, other = list[int](), list[int]()
    found = bisect_torch(
        tmp_path / "a", tmp_path / "b", train_a=goes_on(asking), train_b=goes_on(other, factor=1.5, ask=False)
    )
    assert found.call is not None and (found.step, found.call.call.options) == (AT, "other=1.5")
    assert asking == [AT - 1, AT]
    assert other == [0, *range(AT + 1)], "the first step is seen to be another, and the training left"


@pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler.step")
def test_what_is_trained_now_keeps_states_where_the_record_has_them(tmp_path: Path) -> None:
    goes_on()(keyframes(tmp_path / "a"))
    before, now = list[int](), list[int]()
    found = bisect_torch(tmp_path / "a", train_a=goes_on(before), train_b=goes_on(now, factor=1.5))
    assert found.call is not None and (found.step, found.call.call.options) == (AT, "other=1.5")
    assert (before, now) == ([AT - 1, AT], [*range(AT + 1), AT - 1, AT])


@pytest.mark.filterwarnings("ignore:Detected call of `lr_scheduler.step")
@pytest.mark.parametrize("has_calls", ["a", "b"])
def test_a_part_is_held_against_a_whole_run_that_has_the_calls(tmp_path: Path, has_calls: str) -> None:
    class WithCalls:
        level = "op"

        def open_recorder(self, run: Any) -> Any:
            from dgrr.trace import open_recorder

            path = tmp_path / has_calls
            return open_recorder(Keep(path, record="digest", keyframe_every=2, ops=(AT,)), run)

    for name, factor in (("a", 1.0), ("b", 1.5)):
        goes_on(factor=factor)(WithCalls() if name == has_calls else keyframes(tmp_path / name))
    steps = list[int]()
    found = bisect_torch(tmp_path / "a", tmp_path / "b", train_a=goes_on(steps), train_b=goes_on(steps, factor=1.5))
    assert found.call is not None and (found.step, found.call.call.options) == (AT, "other=1.5")
    assert steps == [AT - 1, AT]

"""What is written down of a training loop of PyTorch."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.tape import DomainError
from dgrr.trace import Keep, NonFiniteError, Run, compare, open_trace, record_torch, replay
from dgrr.trace.frameworks.pytorch.arrays import array
from dgrr.trace.v2.format.digest import Algorithm, InputDigest

from .pytorch_runs import Made, batches, cross_entropy, network, sgd, torch, train

optim = torch.optim


def bits(array: Any) -> bytes:
    return np.ascontiguousarray(array).tobytes()


def test_every_step_is_recorded_as_it_was(path: Path) -> None:
    model = network()
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01)
    scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    seen = []
    with record_torch(model, optimizer, path) as run:
        for batch in batches(5):
            optimizer.zero_grad()
            loss = run.loss(cross_entropy(model, batch), batch)
            loss.backward()
            grads = {name: p.grad.clone().numpy() for name, p in model.named_parameters()}
            optimizer.step()
            params = {name: p.detach().clone().numpy() for name, p in model.named_parameters()}
            kept = {name: optimizer.state[p]["momentum_buffer"].clone() for name, p in model.named_parameters()}
            seen.append((loss.item(), grads, params, kept))
            scheduler.step()
        assert run.steps == 5
    with open_trace(path) as trace:
        assert trace.sealed and trace.schema.groups[0].rule == "sgd@1"
        assert [view.hyper["lr"] for view in trace] == [0.1, 0.1, 0.05, 0.05, 0.025]
        assert trace[0].hyper | {"lr": 0} == {
            "lr": 0,
            "momentum": 0.9,
            "dampening": 0,
            "nesterov": 1,
            "weight_decay": 0.01,
        }
        for view, (value, grads, params, kept) in zip(trace, seen, strict=True):
            assert view.loss == np.float32(value)
            after = view.after()
            assert int(after["step"]) == view.step + 1
            for name, grad in grads.items():
                assert bits(view.grad(name)) == bits(grad)
                assert bits(after[name]) == bits(params[name])
                assert bits(after[f"momentum/{name}"]) == bits(kept[name])


def test_the_batch_is_that_which_was_handed_over_or_what_the_model_was_called_with(path: Path) -> None:
    model = network()
    optimizer = sgd(model.parameters())
    (x, y), *_ = batches(1)
    with record_torch(model, optimizer, path) as run:
        for batch in (None, (x, y), {"x": x, "more": [y, 3]}):
            with torch.no_grad():
                model(x + 1)  # as of a validation: no part of the step
            run.loss(model(x).sum(), batch).backward()
            optimizer.step()
    digest = InputDigest(Algorithm.XXH3_128)
    expected = [
        {"0": x.numpy()},
        (x.numpy(), y.numpy()),
        {"x": x.numpy(), "more.0": y.numpy(), "more.1": np.asarray(3)},
    ]
    with open_trace(path) as trace:
        assert [view.input_digest for view in trace] == [digest(batch) for batch in expected]


ADAMS: list[Made] = [
    lambda p: optim.Adam(p, lr=0.01, betas=(0.8, 0.99), weight_decay=0.1),
    lambda p: optim.AdamW(p, lr=torch.tensor(0.01), betas=(0.8, 0.99), weight_decay=0.1, foreach=False),
]


@pytest.mark.parametrize(("make", "rule"), [(ADAMS[0], "adam@1"), (ADAMS[1], "adamw@1")])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_adam_is_recorded_as_a_law_with_its_state(path: Path, make: Made, rule: str, dtype: Any) -> None:
    model = network(dtype)
    kept: list[Any] = []
    train(path, lambda p: kept.append(make(p)) or kept[0], model=model, dtype=dtype)
    with open_trace(path) as trace:
        assert trace.schema.groups[0].rule == rule
        assert trace.header.numerics == 0
        view = trace[-1]
        assert view.hyper == {"lr": pytest.approx(0.01), "beta1": 0.8, "beta2": 0.99, "eps": 1e-8, "weight_decay": 0.1}
        assert view.corrections == (1 - 0.8**5, 1 - 0.99**5)
        for name, param in model.named_parameters():
            assert bits(view.after()[f"m/{name}"]) == bits(kept[0].state[param]["exp_avg"])
            assert bits(view.after()[f"v/{name}"]) == bits(kept[0].state[param]["exp_avg_sq"])
        assert not any(trace.keyframe(0)[f"m/{name}"].any() for name, _ in model.named_parameters())


def two_groups(params: Any) -> Any:
    params = list(params)
    decayed, rest = [p for p in params if p.ndim > 1], [p for p in params if p.ndim == 1]
    return optim.AdamW([{"params": decayed, "weight_decay": 0.1}, {"params": rest, "lr": 0.05}], weight_decay=0.0)


def test_groups_have_hyperparameters_of_their_own(path: Path) -> None:
    train(path, two_groups)
    with open_trace(path) as trace:
        assert trace.schema.groups[0].rule == "adamw_groups@1"
        hyper = trace[0].hyper
    assert (hyper["lr/0"], hyper["lr/1"]) == (0.001, 0.05)
    assert (hyper["weight_decay/0"], hyper["weight_decay/1"]) == (0.1, 0.0)
    assert "the rule 'adamw_groups@1' is not known" in str(replay(path))


@pytest.mark.parametrize(
    ("make", "rule", "hyper", "keeps"),
    [
        (lambda p: optim.RMSprop(p, lr=0.01), "torch_rmsprop@1", {"lr": 0.01, "alpha": 0.99}, {"step", "square_avg"}),
        (lambda p: optim.Adagrad(p, lr=0.01), "torch_adagrad@1", {"lr": 0.01}, {"step", "sum"}),
        (lambda p: optim.Muon(p, lr=0.01), "torch_muon@1", {"lr": 0.01}, {"momentum_buffer"}),
        (
            lambda p: optim.Adam(p, amsgrad=True),
            "torch_adam@1",
            {"betas.0": 0.9, "amsgrad": 1.0},
            {"step", "exp_avg", "exp_avg_sq", "max_exp_avg_sq"},
        ),
        (lambda p: optim.SGD(p, lr=0.1, maximize=True), "torch_sgd@1", {"maximize": 1.0}, set()),
        (
            lambda p: optim.SGD(p, lr=0.1, momentum=0.5, dampening=-1),
            "torch_sgd@1",
            {"dampening": -1.0},
            {"momentum_buffer"},
        ),
    ],
)
def test_what_follows_no_law_is_unproven_with_its_state_by_its_names(
    path: Path, make: Made, rule: str, hyper: dict[str, float], keeps: set[str]
) -> None:
    made: list[Any] = []
    model = network()
    weights = [p for p in model.parameters() if p.ndim == 2]  # all that Muon takes
    train(path, lambda p: made.append(make(weights)) or made[0], model=model)
    with open_trace(path) as trace:
        assert trace.schema.groups[0].rule == rule
        assert trace[0].hyper.items() >= hyper.items()
        after, names = trace[-1].after(), [t.name for t in trace.schema.tensors if t.role.name == "STATE"]
        assert set(names) == {"step"} | {f"{key}/{name}" for key in keeps for name in ("0.weight", "2.weight")}
        for key in keeps:
            assert bits(after[f"{key}/2.weight"]) == bits(made[0].state[model[2].weight][key])
    report = replay(path)
    assert report.verdict.value == "unproven"
    assert f"the rule '{rule}' is not known" in str(report)


def test_adam_with_decoupled_decay_is_adamw(path: Path) -> None:
    if "decoupled_weight_decay" not in optim.Adam([torch.zeros(1)]).param_groups[0]:
        pytest.skip("this version of PyTorch has no such option")
    train(path, lambda p: optim.Adam(p, weight_decay=0.1, decoupled_weight_decay=True))
    with open_trace(path) as trace:
        assert trace.schema.groups[0].rule == "adamw@1"


@pytest.mark.parametrize("by_name", [False, True])
def test_a_closure_gives_the_loss(path: Path, by_name: bool) -> None:
    model = network()
    optimizer = optim.LBFGS(model.parameters(), max_iter=3)
    first = []
    with record_torch(model, optimizer, path) as run:
        for batch in batches(3):
            values: list[float] = []

            def closure(batch: Any = batch, values: list[float] = values) -> Any:
                optimizer.zero_grad()
                loss = run.loss(cross_entropy(model, batch), batch)
                loss.backward()
                values.append(loss.item())
                return loss

            result = optimizer.step(closure=closure) if by_name else optimizer.step(closure)
            assert result.item() == values[0] and len(values) > 1
            first.append(values[0])
    with open_trace(path) as trace:
        assert trace.loss.tolist() == first
        assert [view.micro_batches for view in trace] == [1, 1, 1]


def test_micro_batches_are_one_step_with_the_sum_of_their_losses(path: Path) -> None:
    model = network()
    optimizer = sgd(model.parameters())
    with record_torch(model, optimizer, path) as run:
        optimizer.zero_grad()
        losses = []
        for batch in batches(3):
            loss = run.loss(cross_entropy(model, batch) / 3, batch)
            loss.backward()
            losses.append(np.float32(loss.item()))
        optimizer.step()
    with open_trace(path) as trace:
        assert len(trace) == 1 and trace[0].micro_batches == 3
        assert trace[0].loss == losses[0] + losses[1] + losses[2]
        arrays = {f"{i}.{j}": a.numpy() for i, batch in enumerate(batches(3)) for j, a in enumerate(batch)}
        assert trace[0].input_digest == InputDigest(Algorithm.XXH3_128)(arrays)


def test_a_loss_whose_gradients_were_thrown_away_does_not_count(path: Path) -> None:
    """As after a step that a gradient scaler has left out."""
    model = network()
    optimizer = sgd(model.parameters())
    with record_torch(model, optimizer, path) as run:
        for i, batch in enumerate(batches(4)):
            optimizer.zero_grad()
            loss = run.loss(cross_entropy(model, batch))
            loss.backward()
            if i != 1:
                optimizer.step()
    with open_trace(path) as trace:
        assert [view.micro_batches for view in trace] == [1, 1, 1]
        digest = InputDigest(Algorithm.XXH3_128)
        expected = [digest({"0": x.numpy()}) for i, (x, _) in enumerate(batches(4)) if i != 1]
        assert [view.input_digest for view in trace] == expected


def test_losses_that_are_added_before_they_go_backward_all_count(path: Path) -> None:
    model = network()
    optimizer = sgd(model.parameters())
    with record_torch(model, optimizer, path) as run:
        for batch in batches(2):
            optimizer.zero_grad()
            (run.loss(cross_entropy(model, batch)) + run.loss(model(batch[0]).square().mean())).backward()
            optimizer.step()
    with open_trace(path) as trace:
        assert [view.micro_batches for view in trace] == [2, 2]


@pytest.mark.parametrize("frozen", [False, True])
def test_params_that_are_not_updated_have_no_gradient(path: Path, frozen: bool) -> None:
    """Not even where autograd has made one."""
    model = network()
    model[0].requires_grad_(not frozen)
    train(path, lambda _: sgd(model[2].parameters()), model=model)
    with open_trace(path) as trace:
        assert set(trace[0].grad_digests) == {"2.weight", "2.bias"}
        assert trace.schema.params == 4


def test_buffers_of_the_model_are_its_state(path: Path) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.BatchNorm1d(4), torch.nn.Linear(4, 3))
    train(path, sgd, model=model)
    with open_trace(path) as trace:
        assert int(trace.buffers(-1)["1.num_batches_tracked"]) == 5
        assert bits(trace.buffers(-1)["1.running_mean"]) == bits(model[1].running_mean)


def test_a_loss_of_less_precision_is_float32_and_a_batch_what_it_is(path: Path) -> None:
    model = network()
    optimizer = sgd(model.parameters())
    x = next(batches(1))[0]
    with record_torch(model, optimizer, path) as run:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = run.loss(model(x).mean(), x.to(torch.bfloat16))
        loss.backward()
        optimizer.step()
    with open_trace(path) as trace:
        assert trace[0].loss.dtype == np.float32
        assert trace[0].input_digest == InputDigest(Algorithm.XXH3_128)({"0": array(x.to(torch.bfloat16))})


def test_the_scale_of_the_loss_is_told_and_compared(tmp_path: Path) -> None:
    for name, scale in (("a", 3.0), ("b", 5.0)):
        optimizer = sgd((model := network()).parameters())
        scaler = torch.amp.GradScaler("cpu", init_scale=scale)
        with record_torch(model, optimizer, tmp_path / name) as run:
            for batch in batches(2):
                optimizer.zero_grad()
                scaler.scale(run.loss(cross_entropy(model, batch))).backward()
                scaler.step(optimizer)
                scaler.update()
    with open_trace(tmp_path / "a") as trace:
        assert trace.metrics(0) == {"loss_scale": 3.0}
    found = compare(tmp_path / "a", tmp_path / "b")
    assert not found and found.settings["loss_scale"] == (3.0, 5.0)


def test_sparse_gradients_are_recorded_whole(path: Path) -> None:
    model = torch.nn.Embedding(4, 2, sparse=True)
    optimizer = sgd(model.parameters())
    with record_torch(model, optimizer, path) as run:
        run.loss(model(torch.tensor([1, 1])).sum()).backward()
        optimizer.step()
    with open_trace(path) as trace:
        assert trace[0].grad("weight").tolist() == [[0, 0], [2, 2], [0, 0], [0, 0]]


def test_the_seed_is_that_of_pytorch_or_the_one_given(path: Path, tmp_path: Path) -> None:
    train(path, sgd)  # the network sets it to 0
    train(tmp_path / "other.dgrr", sgd, seed=7)
    with open_trace(path) as trace, open_trace(tmp_path / "other.dgrr") as other:
        assert (trace.header.seed, other.header.seed) == (0, 7)


def hooks(model: Any, optimizer: Any) -> int:
    of_modules = [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules()]
    return sum(of_modules) + len(optimizer._optimizer_step_pre_hooks) + len(optimizer._optimizer_step_post_hooks)


def test_the_block_ends_with_a_sealed_trace_and_no_hooks(path: Path) -> None:
    model = network()
    optimizer = sgd(model.parameters())
    with record_torch(model, optimizer, path):
        assert hooks(model, optimizer) > 0
    assert hooks(model, optimizer) == 0
    cross_entropy(model, next(batches(1))).backward()
    optimizer.step()
    with open_trace(path) as trace:
        assert trace.sealed and len(trace) == 0


def test_an_error_leaves_the_trace_unfinished(path: Path) -> None:
    model = network()
    optimizer = sgd(model.parameters())
    with pytest.raises(KeyError), record_torch(model, optimizer, path):
        raise KeyError("something")
    assert hooks(model, optimizer) == 0
    assert not path.exists() and path.with_name("run.dgrr.partial").exists()


def test_a_loss_that_is_not_finite_ends_a_sealed_trace(path: Path) -> None:
    model = network()
    optimizer = sgd(model.parameters())

    def diverge() -> None:
        with record_torch(model, optimizer, path) as run:
            for factor in (1.0, float("nan")):
                optimizer.zero_grad()
                run.loss(cross_entropy(model, next(batches(1))) * factor).backward()
                optimizer.step()

    with pytest.raises(NonFiniteError, match="got nan in 'loss'"):
        diverge()
    with open_trace(path) as trace:
        assert trace.sealed and len(trace) == 1


class Factory:
    """What opens a recorder elsewhere, and is told the policy."""

    def __init__(self, path: Path, **options: Any) -> None:
        self.keep, self.told = Keep(path, **{"record": "full", **options}), list[Run]()
        self.default_policy = "bitwise"

    def open_recorder(self, run: Run) -> Any:
        from dgrr.trace import open_recorder

        self.told.append(run)
        return open_recorder(self.keep, run)


def test_a_factory_opens_the_recorder_and_is_told_the_policy(path: Path) -> None:
    factory = Factory(path, created_at=0, salt=bytes(16))
    train(factory, sgd)
    assert factory.default_policy == "rtol=1e-4,atol=1e-6"
    (run,) = factory.told
    assert ([group.rule for group in run.rules], run.numerics, run.clip_value) == (["sgd@1"], 0, None)
    first = path.read_bytes()
    train(Factory(path, created_at=0, salt=bytes(16), overwrite=True), sgd)
    assert path.read_bytes() == first


def test_what_is_kept_is_said_once(path: Path) -> None:
    for trace in (Keep(path), Factory(path)):
        with pytest.raises(DomainError) as caught:
            train(trace, sgd, record="grads")
        assert str(caught.value) == (
            "record_torch: argument 'record': expected None with a 'trace' that says what it keeps, got 'grads'"
        )
    assert not list(path.parent.iterdir())


def test_what_the_model_becomes_after_its_last_step_is_no_part_of_the_run(path: Path) -> None:
    """Where the state is digested now and then, that of the end is read when the trace is sealed."""
    files = []
    for more in (0.0, 1.0):
        model = network()
        optimizer = sgd(model.parameters())
        options = {"created_at": 0, "salt": bytes(16), "state_every": 2, "overwrite": True}
        with record_torch(model, optimizer, Factory(path, **options)) as run:
            run.loss(cross_entropy(model, next(batches(1)))).backward()
            optimizer.step()
            with torch.no_grad():
                model[0].bias += more
        files.append(path.read_bytes())
    assert files[0] == files[1]

"""Callbacks for transformers' and Lightning's trainers, with the packages themselves."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.base.errors import DgrrError
from dgrr.trace import compare, lightning_callback as for_lightning, open_trace, record_torch, transformers_callback

torch: Any = pytest.importorskip("torch", reason="these tests need PyTorch: pip install -e '.[test,torch]'")

STEPS = 4


@pytest.fixture(autouse=True)
def kept_threads() -> Iterator[None]:
    """Trainers set what holds for the process."""
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def samples(n: int) -> list[dict[str, Any]]:
    draw = torch.Generator().manual_seed(0)
    ids = [torch.randint(0, 16, (8,), generator=draw) for _ in range(n)]
    return [{"input_ids": each, "labels": each} for each in ids]


def gpt_model() -> Any:
    """A tiny GPT-2."""
    transformers: Any = pytest.importorskip("transformers", reason="needs transformers: pip install -e '.[bench]'")
    config = transformers.GPT2Config(vocab_size=16, n_positions=8, n_embd=8, n_layer=1, n_head=2)
    return transformers.GPT2LMHeadModel(config)


def gpt(trace: Any, folder: Path, accumulate: int = 1, lr: float = 1e-2) -> None:
    """Train it by transformers' Trainer."""
    transformers: Any = pytest.importorskip("transformers", reason="needs transformers: pip install -e '.[bench]'")
    torch.manual_seed(0)
    told = transformers.TrainingArguments(
        str(folder / "out"), max_steps=STEPS, per_device_train_batch_size=2, gradient_accumulation_steps=accumulate,
        report_to=[], save_strategy="no", disable_tqdm=True, learning_rate=lr, use_cpu=True, logging_strategy="no",
    )  # fmt: skip
    transformers.Trainer(
        gpt_model(), told, train_dataset=samples(STEPS * 2 * accumulate),
        callbacks=[transformers_callback(trace)],
    ).train()  # fmt: skip


@pytest.mark.parametrize("accumulate", [1, pytest.param(2, marks=pytest.mark.long)])
def test_transformers_trainer_is_recorded(tmp_path: Path, accumulate: int) -> None:
    gpt(tmp_path / "a.dgrr", tmp_path, accumulate)
    gpt(tmp_path / "b.dgrr", tmp_path, accumulate)
    trace = open_trace(tmp_path / "a.dgrr")
    assert len(trace) == STEPS
    assert len(trace[0].record.grads) == len(list(gpt_model().parameters()))
    assert compare(tmp_path / "a.dgrr", tmp_path / "b.dgrr").same


def test_what_changes_a_trainer_is_found(tmp_path: Path) -> None:
    gpt(tmp_path / "a.dgrr", tmp_path)
    gpt(tmp_path / "b.dgrr", tmp_path, lr=2e-2)
    found = compare(tmp_path / "a.dgrr", tmp_path / "b.dgrr")
    assert (found.same, found.cause and found.cause.value, found.step) == (False, "rule", 0)


def module(optimizers: int = 1, fail: bool = False) -> Any:
    """A tiny module of Lightning."""
    lightning: Any = pytest.importorskip("lightning.pytorch", reason="needs lightning: pip install -e '.[bench]'")
    torch.manual_seed(0)

    class Tiny(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.net = torch.nn.Linear(3, 2)
            self.automatic_optimization = optimizers == 1

        def training_step(self, batch: Any, index: int) -> Any:
            if fail and index == 2:
                raise RuntimeError("the data end here")
            return self.net(batch).square().mean()

        def configure_optimizers(self) -> Any:
            return [torch.optim.AdamW(self.parameters(), lr=0.1) for _ in range(optimizers)]

    return Tiny()


BATCHES = list(torch.ones(8, 5, 3) * torch.arange(1, 9)[:, None, None])


def lit(trace: Any, accumulate: int = 1, **options: Any) -> None:
    """Train it."""
    made = module(**options)
    lightning: Any = pytest.importorskip("lightning.pytorch")
    lightning.Trainer(
        max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, accumulate_grad_batches=accumulate, callbacks=[for_lightning(trace)],
    ).fit(made, torch.utils.data.DataLoader(BATCHES, batch_size=None))  # fmt: skip


def by_hand(path: Path, accumulate: int) -> None:
    """What Lightning does, as a loop."""
    made = module()
    optimizer = made.configure_optimizers()[0]
    with record_torch(made, optimizer, path) as run:
        for i, batch in enumerate(BATCHES):
            if i % accumulate == 0:
                optimizer.zero_grad()
            run.loss(made.training_step(batch, i) / accumulate, batch=batch).backward()
            if i % accumulate == accumulate - 1:
                optimizer.step()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("accumulate", [1, 4])
def test_lightning_is_recorded_as_a_loop_is(tmp_path: Path, accumulate: int) -> None:
    lit(tmp_path / "a.dgrr", accumulate)
    by_hand(tmp_path / "b.dgrr", accumulate)
    assert len(open_trace(tmp_path / "a.dgrr")) == 8 // accumulate
    found = compare(tmp_path / "a.dgrr", tmp_path / "b.dgrr")
    assert found.same, found


@pytest.mark.filterwarnings("ignore")
def test_a_training_that_fails_leaves_a_readable_trace(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="the data end here"):
        lit(tmp_path / "a.dgrr", fail=True)
    assert len(open_trace(tmp_path / "a.dgrr.partial")) == 2


@pytest.mark.filterwarnings("ignore")
def test_several_optimizers_are_refused(tmp_path: Path) -> None:
    words = "^lightning_callback: expected a training with one optimizer, got 2; record each with record_torch"
    with pytest.raises(DgrrError, match=words):
        lit(tmp_path / "a.dgrr", optimizers=2)


@pytest.mark.parametrize(("call", "name"), [(transformers_callback, "transformers"), (for_lightning, "lightning")])
def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, call: Any, name: str) -> None:
    monkeypatch.setitem(__import__("sys").modules, name, None)
    monkeypatch.setitem(__import__("sys").modules, "lightning.pytorch", None)
    with pytest.raises(ModuleNotFoundError, match=f"{call.__name__}.*{name}"):
        call("run.dgrr")


@pytest.mark.parametrize("inside", [False, True])
def test_the_first_value_of_a_closure_counts(tmp_path: Path, inside: bool) -> None:
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=3)
    seen = list[float]()
    with record_torch(model, optimizer, tmp_path / "a.dgrr", record="digest") as run:

        def closure() -> Any:
            optimizer.zero_grad()
            loss = model(torch.ones(4, 3)).square().mean()
            seen.append(loss.item())
            (run.loss(loss) if inside else loss).backward()
            return loss

        optimizer.step(closure)
    assert len(seen) > 1
    assert open_trace(tmp_path / "a.dgrr")[0].loss == np.float32(seen[0])

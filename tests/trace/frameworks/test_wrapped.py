"""A model has the same names however it is wrapped, and each process a file of its own."""

from pathlib import Path
from typing import Any

import pytest

from dgrr.trace import Keep, compare, open_trace
from dgrr.trace.frameworks.pytorch.torch_modules import TorchModules, class_name

from .gpt import torch, train
from .pytorch_runs import network, sgd, train as train_small

nn = torch.nn


def checkpointed(model: Any) -> Any:
    """Each block in a wrapper that computes it once more in the backward pass."""
    from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper

    for i, block in enumerate(model.blocks):
        model.blocks[i] = checkpoint_wrapper(block)
    return model


@pytest.mark.parametrize("wrapped", [nn.DataParallel, checkpointed, lambda m: nn.DataParallel(checkpointed(m))])
def test_wrapped_models_are_held_to_one_golden(tmp_path: Path, wrapped: Any) -> None:
    for name, how in (("plain", lambda model: model), ("wrapped", wrapped)):
        train(Keep(tmp_path / name, record="bare", ops="every"), steps=2, wrapped=how)
    assert compare(tmp_path / "plain", tmp_path / "wrapped", proven=True)
    with open_trace(tmp_path / "plain") as a, open_trace(tmp_path / "wrapped") as b:
        assert a.schema == b.schema and a.header.environment == b.header.environment


def test_a_mistake_inside_a_wrapper_has_its_name(tmp_path: Path) -> None:
    for name, made in (("plain", {}), ("wrapped", {"mlp_residual": 0.5})):
        how = (lambda model: model) if name == "plain" else checkpointed
        train(Keep(tmp_path / name, record="bare", ops="every"), steps=1, wrapped=how, **made)
    found = compare(tmp_path / "plain", tmp_path / "wrapped")
    assert found.op is not None and found.op.short.startswith(
        "between blocks.0.mlp and the end of blocks.0 (Block.forward, "
    )


def test_a_compiled_model_has_the_names_of_its_params() -> None:
    model = network()
    compiled = TorchModules(torch.compile(model, backend="eager"))
    assert list(compiled.params) == list(dict(model.named_parameters()))
    assert [class_name(layer) for layer in compiled.layers.values()] == ["OptimizedModule"]


@pytest.mark.parametrize("in_place", [False, True])
def test_a_compiled_model_is_held_to_the_golden_of_one_that_is_not(tmp_path: Path, in_place: bool) -> None:
    """No hook breaks its graph; that layers are not seen is said in the first line."""
    model = network()
    if in_place:
        model.compile(backend="eager", fullgraph=True)
    else:
        model = torch.compile(model, backend="eager", fullgraph=True)
    train_small(Keep(tmp_path / "a", record="bare", ops="every"), sgd, steps=2)
    train_small(Keep(tmp_path / "b", record="bare", ops="every"), sgd, steps=2, model=model)
    found = compare(tmp_path / "a", tmp_path / "b", proven=True)
    assert found, str(found)
    assert "2 steps; not compared, as one run is compiled: the layers of 2 steps" in found.sentence


def test_a_module_of_that_name_that_is_no_wrapper_keeps_it() -> None:
    class Holder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.module = nn.Linear(2, 2)

    assert list(TorchModules(Holder()).params) == ["module.weight", "module.bias"]


@pytest.mark.parametrize("kept", [str, Keep])
def test_each_rank_has_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: Any) -> None:
    train_small(kept(f"{tmp_path}/{{rank}}.dgrr"), sgd, steps=1)
    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "get_rank", lambda: 3)
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda: 4)
    train_small(kept(f"{tmp_path}/{{rank}}.dgrr"), sgd, steps=1)
    with pytest.raises(ValueError, match=r"with {rank} in it, since each of 4 processes .*; got '.*/x'"):
        train_small(kept(f"{tmp_path}/x"), sgd, steps=1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.dgrr", "3.dgrr"]

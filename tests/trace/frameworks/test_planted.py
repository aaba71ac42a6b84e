"""Mistakes planted in a language model and its loop, each with the one name that is true of it."""

import re
from pathlib import Path
from typing import Any

import pytest

from dgrr.trace import Comparison, Keep, compare, open_trace

from .gpt import GPT, Block, CausalAttn, torch, train


def recorded(path: Path, *, state_every: int | None = None, ops: Any = "every", **made: Any) -> Path:
    train(Keep(path, record="bare", ops=ops, state_every=state_every), **made)
    return path


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run without a mistake."""
    return recorded(tmp_path_factory.mktemp("right") / "right.dgrr")


ATTENTION = "from equal state and data * between blocks.0.attn.qkv and blocks.0.attn.proj (CausalAttn.forward, *)"
LOSS = (
    "from equal state and data it computes another loss; first between head and the end of the model (GPT.forward, *)"
)
OPTIMIZER = "* first between the backward pass and the optimizer's step (train, *)"

PLANTED: dict[str, tuple[dict[str, Any], str, int | None, str]] = {
    "rope base": ({"rope": 10001.0}, "gradient", 0, ATTENTION),
    "attention scale": ({"scale": 0.36}, "gradient", 0, ATTENTION),
    "mask": ({"diagonal": 1}, "gradient", 0, ATTENTION),
    "layer norm eps": ({"eps": 2e-5}, "model", 0, "it runs other ops; first torch.LayerNorm in layer blocks.0.ln_1"),
    "weight tying": (
        {"tied": False},
        "model",
        None,
        "the models differ: param 'head.weight' f32 (11, 16) is in b only",
    ),
    "learning rate": ({"lr": 1.1e-2}, "rule", 0, "it has another lr: 0.01 -> 0.011"),
    "betas": ({"betas": (0.9, 0.99)}, "rule", 0, "it has another beta2: 0.999 -> 0.99"),
    "weight decay": ({"decay": 0.11}, "rule", 0, "it has another weight_decay: 0.1 -> 0.11"),
    "clip threshold": ({"clip": 0.09}, "gradient", 0, OPTIMIZER),
    "dropout p": ({"dropout": 0.2}, "model", 0, "it runs other ops; first torch.Dropout in layer blocks.0.mlp.drop"),
    "init": ({"std": 0.021}, "start", None, "they start from different values: * first 'wte.weight' before step 0"),
    "data order": ({"order": [0, 2, 1]}, "data", 1, "it was given another batch; first 'input'"),
    "label shift": ({"shift": True}, "gradient", 0, LOSS),
    "loss reduction": ({"reduction": "sum"}, "gradient", 0, LOSS),
    "accumulate": ({"micro": 2}, "data", 0, "it was given another batch, of 2 parts, not 1*"),
    "scheduler off by one": ({"warm": 1}, "rule", 1, "it has another lr: 0.009* -> 0.0081*"),
    "fused optimizer": (
        {"fused": True},
        "update",
        0,
        "from equal gradients the rule makes another '*' after *",
    ),
    "residual scale": (
        {"attn_residual": 0.99},
        "gradient",
        0,
        "from equal state and data * between blocks.0.attn and blocks.0.ln_2 (Block.forward, *)",
    ),
    "residual scale at the end": (
        {"mlp_residual": 0.99},
        "gradient",
        0,
        "from equal state and data * between blocks.0.mlp and the end of blocks.0 (Block.forward, *)",
    ),
    "gelu": ({"gelu": "tanh"}, "model", 0, "it runs other ops; first torch.GELU in layer blocks.0.mlp.act"),
    "embedding scale": ({"embedding": 4.0}, "gradient", 0, "* first between wte and blocks.0 (GPT.called, *)"),
    "no zero_grad": ({"zeroed": False}, "gradient", 1, OPTIMIZER),
    "seed": ({"seed": 1}, "start", None, "they start from different values: *"),
    "dropout drawn again": (
        {"checkpoint": True, "preserve": False},
        "gradient",
        0,
        "* first the backward of torch.Dropout in layer blocks.1.mlp.drop",
    ),
}


def matches(pattern: str, text: str) -> bool:
    """Whether a text is a pattern, in which a star stands for anything."""
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), text) is not None


@pytest.mark.parametrize("mistake", PLANTED)
def test_a_mistake_is_given_its_name(right: Path, tmp_path: Path, mistake: str) -> None:
    made, cause, step, sentence = PLANTED[mistake]
    found = compare(right, recorded(tmp_path / "wrong.dgrr", **made))
    assert found.cause is not None
    assert (found.cause.value, found.step) == (cause, step)
    said = found.sentence if step is None else found.sentence.removeprefix(f"step {step} is the first that differs: ")
    assert matches(sentence, said), said


@pytest.mark.parametrize("wrapped", ["plain", "checkpoint"])
def test_the_same_run_is_the_same(right: Path, tmp_path: Path, wrapped: str) -> None:
    """Layers that run again in the backward pass are no other model."""
    again = recorded(tmp_path / "again.dgrr", checkpoint=wrapped == "checkpoint")
    assert compare(right, again, proven=True)


def code_in(found: Comparison) -> tuple[str, int, int]:
    """The file and the lines that are named."""
    assert found.op is not None
    named = re.fullmatch(r"(.*/gpt\.py):(\d+)(?:-(\d+))?: .*", found.op.node.place)
    assert named is not None
    first, last = named[2], named[3] or named[2]
    return named[1], int(first), int(last)


@pytest.mark.parametrize(
    ("made", "function", "line"),
    [
        ({"rope": 9999.0}, CausalAttn.forward, "q, k = rotated"),
        ({"diagonal": 2, "scale": 0.1}, CausalAttn.forward, "scores ="),
        ({"attn_residual": 2.0}, Block.forward, "x = x + self.attn"),
        ({"mlp_residual": 2.0}, Block.forward, "return x + self.mlp"),
        ({"reduction": "sum"}, GPT.forward, "reduction ="),
    ],
    ids=["rope", "scale", "attn_residual", "mlp_residual", "reduction"],
)
def test_the_lines_that_are_named_hold_the_mistake(
    right: Path, tmp_path: Path, made: dict[str, Any], function: Any, line: str
) -> None:
    file, first, last = code_in(compare(right, recorded(tmp_path / "wrong.dgrr", **made)))
    begin = function.__code__.co_firstlineno
    assert begin < first <= last
    text = Path(file).read_text().split("\n")[first - 1 : last]
    assert any(each.strip().startswith(line) for each in text)


def test_an_update_is_blamed_on_its_step_where_no_state_is_recorded(tmp_path: Path) -> None:
    """The next step reads what the update has made, and its ops show that."""
    paths = [recorded(tmp_path / f"{fused}.dgrr", state_every=16, fused=fused) for fused in (False, True)]
    found = compare(*paths)
    assert found.cause is not None and (found.cause.value, found.step) == ("update", 0)
    begun, _, end = found.sentence.partition(" '")  # which param is the first is a matter of the processor
    assert begun == "step 0 is the first that differs: from equal gradients the rule makes another"
    assert end.endswith(" after the step; step 1, which begins from it, computes another loss or gradient")


def test_a_state_is_not_called_equal_where_nothing_shows_it(tmp_path: Path) -> None:
    both = [recorded(tmp_path / f"{fused}.dgrr", state_every=16, ops="first", fused=fused) for fused in (False, True)]
    found = compare(*both)
    assert found.step == 1
    assert "from equal data, and a state that is not known to be equal, it computes" in found.sentence
    assert "or an update since step 0: the state before step 1 is not recorded (state_every 16)" in found.notes


def test_an_update_in_one_of_several_steps(tmp_path: Path) -> None:
    both = [
        recorded(tmp_path / f"{lr}.dgrr", state_every=16, ops=[2], steps=4, order=[0, 1, 2, 3], fused=lr)
        for lr in (False, True)
    ]
    with open_trace(both[0]) as trace:
        assert trace.ops(1) is None
    found = compare(*both)
    assert found.step == 1 and "not known to be equal" in found.sentence


def test_what_a_layer_computes_again_otherwise_is_a_node(tmp_path: Path) -> None:
    """A layer in front of the last of a checkpointed part, whose value the backward pass needs."""

    class Drawn(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.noise, self.square = Noise(), Square()

        def forward(self, x: Any) -> Any:
            from torch.utils.checkpoint import checkpoint

            return checkpoint(lambda y: self.square(self.noise(y)), x, use_reentrant=False, preserve_rng_state=False)

    from dgrr.trace import record_torch

    model = torch.nn.Sequential(torch.nn.Linear(3, 3), Drawn())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with record_torch(model, optimizer, Keep(tmp_path / "run.dgrr", ops="first")) as run:
        run.loss(model(torch.ones(2, 3)).sum()).backward()
        optimizer.step()
    with open_trace(tmp_path / "run.dgrr") as trace:
        ops = trace.ops(0)
    assert ops is not None
    assert [node.scope for node in ops.nodes if node.op.startswith("recomputed ")] == ["1.noise"]


class Noise(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return x + torch.randn_like(x)


class Square(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return (x * x).cos()

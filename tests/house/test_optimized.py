"""Python's ``-O`` and ``-OO`` take away asserts and docstrings, and nothing that the package promises."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]

PROGRAM = """
import numpy as np
import dgrr.trace
from dgrr.runtime import Adam, Dataset, Trainer
from dgrr.tape import DgrrError, Tape, nn, ops

model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
data = Dataset(np.arange(24, dtype=np.float32).reshape(8, 3), np.arange(8) % 2)
for mode in ("eager", "capture"):
    loss_fn = lambda p, batch: ops.cross_entropy(model(p, batch[0]), batch[1])
    trainer = Trainer(loss_fn, model.init(0), Adam(0.01), mode=mode)
    print(mode, trainer.fit(data.batches(4, seed=0), epochs=2).state_digest)
x = Tape().leaf([1.0])
for call in (lambda: ops.scale(x, x), lambda: ops.softmax(x, "a"), lambda: ops.add(x, [1.0, 2.0])):
    try:
        call()
    except DgrrError as error:
        print(error)
"""


def run(*flags: str, **variables: str) -> str:
    """What the program prints under Python's flags."""
    env = {**os.environ, "PYTHONPATH": str(ROOT.parent), **variables}
    done = subprocess.run([sys.executable, *flags, "-c", PROGRAM], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_training_and_refusals_are_the_same(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    """Under ``-OO``, which takes what ``-O`` takes, and the docstrings."""
    kept = getattr(pytestconfig, "cache", None)
    bytecode = kept.mkdir("bytecode") if kept else tmp_path  # compiling all of numba takes longer than the program
    plain = run()
    digests = [line.split()[1] for line in plain.splitlines()[:2]]
    assert digests[0] == digests[1]
    assert len(plain.splitlines()) == 5
    assert run("-OO", PYTHONPYCACHEPREFIX=str(bytecode)) == plain


NARROWING = (
    "is not None", "isinstance(", "HEADER_STRUCT.size == ", "RECORD_STRUCT.size == ", "assert self.named",
)  # fmt: skip
"""What asserts may do: say to type checkers what is known, and check constants of the file that they stand in."""


@pytest.mark.parametrize("wing", ["base", "screen", "tape", "runtime", "trace"])
def test_no_promise_rests_on_an_assert(wing: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {ast.unparse(node)}"
        for path in sorted((ROOT / wing).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Assert) and not any(words in ast.unparse(node) for words in NARROWING)
    ]
    assert not found, "raise an error that -O keeps:\n" + "\n".join(found)

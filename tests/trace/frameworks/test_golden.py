"""The fixture ``golden_trace`` with a training loop of PyTorch: the page's test, run by pytest."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from dgrr.trace import open_trace

from .pytorch_runs import torch, train

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.xdist_group("golden traces of PyTorch")  # one process loads all of PyTorch

PAGE = Path(__file__).parents[3] / "docs" / "golden_traces_pytorch.md"


def program() -> str:
    """The loop of the page, and its test."""
    blocks = re.findall(r"^```python\n(.*?)^```\n", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    loop, test = blocks[0], next(block for block in blocks if block.startswith("def test_"))
    return loop.replace('\n\ntrain(kept("golden.dgrr"))\n', "\n") + "\n\n" + test


@pytest.fixture(scope="module", autouse=True)
def loaded(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Load all that the page needs: a run of pytest inside this one forgets what was imported in it."""
    train(tmp_path_factory.mktemp("loaded") / "run.dgrr", torch.optim.AdamW)
    import_module("dgrr.trace.v2.read.prepared.alike_steps")  # whose kernels the rest of the engine knows for good


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, rewritten_at_once: None) -> pytest.Pytester:
    """A project of the page's test, on a machine of a person."""
    monkeypatch.delenv("CI", raising=False)
    pytester.makeini("[pytest]\ntestpaths = tests\naddopts = -p no:cacheprovider --strict-markers")
    return pytester


def write(project: pytest.Pytester, old: str = "", new: str = "") -> None:
    assert old in program()
    path = project.path / "tests" / "test_model.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(program().replace(old, new))


def golden(project: pytest.Pytester) -> Path:
    (found,) = project.path.rglob("*.dgrr")
    return found


def test_the_pages_test_is_recorded_and_verified(project: pytest.Pytester) -> None:
    write(project)
    project.runpytest("-n0").assert_outcomes(passed=1)
    first = golden(project).read_bytes()
    result = project.runpytest("-n0")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*1 verified*"])
    assert golden(project).read_bytes() == first
    with open_trace(golden(project)) as trace:
        assert len(trace) == 20 and trace.ops(0) is not None


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("lr=1e-2", "lr=1.1e-2", "*diverged (rule): step 0 *"),
        ("manual_seed(0)", "manual_seed(2)", "*diverged (start): *"),
        ("manual_seed(1)", "manual_seed(2)", "*diverged (data): step 0 *"),
        ("nn.Linear(16, 4)", "nn.Linear(16, 4), nn.Identity(), nn.ReLU()", "*diverged (model): step 0 *"),
    ],
)
def test_a_change_fails_and_is_named(project: pytest.Pytester, old: str, new: str, said: str) -> None:
    write(project)
    project.runpytest("-n0").assert_outcomes(passed=1)
    write(project, old, new)
    result = project.runpytest("-n0")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([said])


TINY = ("            loss.backward()", "            loss.backward()\n            model[0].bias.grad[0] += {by}")


@pytest.mark.parametrize(
    ("by", "policy", "outcome"), [("1e-9", "", "passed"), ("1e-9", "bitwise", "failed"), ("0.1", "", "failed")]
)
def test_a_trace_of_pytorch_has_a_tolerance_unless_another_is_asked(
    project: pytest.Pytester, by: str, policy: str, outcome: str
) -> None:
    mark = ("def test_training", f"import pytest\n\n\n@pytest.mark.golden(policy={policy!r})\ndef test_training")
    for change in (False, True):
        write(project)
        path = project.path / "tests" / "test_model.py"
        text = path.read_text()
        text = text.replace(*mark) if policy else text
        path.write_text(text.replace(TINY[0], TINY[1].format(by=by)) if change else text)
        result = project.runpytest("-n0")
        result.assert_outcomes(**{outcome if change else "passed": 1})

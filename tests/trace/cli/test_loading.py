"""MODULE:FUNCTION: whatever nonsense it names is one line that names the option, and exit code 1."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from dgrr.runtime import SGD, Trainer
from dgrr.trace.cli import main

RecordRun = Callable[..., Path]
Said = tuple[int, str, str]

MODEL = """
import numpy as np
from dgrr.runtime import SGD, capture

number = 7
nothing = None
words = ["make"]


class Wrong:
    pass


class Fussy:
    def __init__(self, one):
        pass


class Unspeakable(Exception):
    def __str__(self):
        raise RuntimeError("no words")


class NoError(BaseException):
    pass


def raises():
    raise ValueError("no\\n   data")


def silent():
    raise AssertionError


def unspeakable():
    raise Unspeakable


def no_error():
    raise NoError("one of its own")


def leaves():
    raise SystemExit(0)


def leaves_in_words():
    raise SystemExit("good bye")


def exhausts():
    raise MemoryError


def deep():
    return deep()


def talks():
    raise ValueError("x " * 5000)


def interrupted():
    raise KeyboardInterrupt


def leaves_when_training(trace):
    raise SystemExit(0)


def interrupted_when_training(trace):
    raise KeyboardInterrupt


def takes(one):
    return one


def gives_nothing():
    pass


def gives_a_number():
    return 5


def gives_a_class():
    return Wrong


def generates():
    yield 1


async def later():
    return 5


def gives_three():
    return len, [1], 3


def gives_no_function():
    return 3, [1]


def gives_no_batches():
    return len, 3


def failing_loss():
    def loss_fn(p, batch):
        raise SystemExit(0)
    return loss_fn, [np.ones(3)]


def imports_late():
    def loss_fn(p, x):
        from good.late import product
        return product(p["w"], x)
    return loss_fn, [np.ones(3)]


def loss_of_no_var():
    return (lambda p, batch: "much"), [np.ones(3)]


def loss_that_is_interrupted():
    def batches():
        raise KeyboardInterrupt
        yield
    return len, batches()


def failing_batches():
    def batches():
        raise OSError(5, "the disk is gone")
        yield
    return len, batches()


def __getattr__(name):
    if name == "trap":
        raise SystemExit(0)
    raise AttributeError(f"module 'nonsense' has no attribute {name!r}")
"""

MODULES = {
    "nonsense": MODEL,
    "wrong_syntax": "def step(:\n",
    "fails": "raise RuntimeError('at import')\n",
    "leaves_at_import": "raise SystemExit(0)\n",
    "needs_more": "import no_such_package\n",
    "interrupted_at_import": "raise KeyboardInterrupt\n",
    "null_byte": "x = 1\0\n",
    "good/__init__": "",
    "good/late": "def product(w, x):\n    return (w * x).sum()\n",
    "good/deep": "class Runs:\n    @staticmethod\n    def run():\n        return len, [(0.0,)]\n",
}

SPECS = {
    "": "expected MODULE:",
    "nonsense": "expected MODULE:",
    ":make": "expected MODULE:",
    "nonsense:": "expected MODULE:",
    "nonsense:make:now": "expected MODULE:",
    "nonsense.py:make": "expected MODULE:",
    "./nonsense:make": "expected MODULE:",
    ".nonsense:make": "expected MODULE:",
    "good..deep:make": "expected MODULE:",
    "nonsense:make it": "expected MODULE:",
    "nonsense:make()": "expected MODULE:",
    "non\0sense:make": "expected MODULE:",
    "no_such_module:make": "there is no module 'no_such_module' in the current folder or among installed modules",
    "no_such_module.deep:make": "there is no module 'no_such_module' in",
    "good.missing:make": "there is no module 'good.missing' in",
    "nonsense.deep:make": "there is no module 'nonsense.deep' in",
    f"{'x' * 300}:make": f"there is no module '{'x' * 300}' in",
    "nonsense:missing": "module 'nonsense' has no attribute 'missing'",
    "nonsense:Wrong.missing": "type object 'Wrong' has no attribute 'missing'",
    "nonsense:trap": "raised SystemExit: 0",
    "wrong_syntax:make": "importing wrong_syntax raised SyntaxError: invalid syntax",
    "null_byte:make": "importing null_byte raised ",
    "fails:make": "importing fails raised RuntimeError: at import",
    "leaves_at_import:make": "importing leaves_at_import raised SystemExit: 0",
    "needs_more:make": "importing needs_more raised ModuleNotFoundError: No module named 'no_such_package'",
    "nonsense:number": "got int",
    "nonsense:nothing": "got None",
    "nonsense:words": "got (str)",
}
"""Nonsense wherever a module and a name in it are asked for, and what is said of it."""

CALLED = {
    "nonsense:raises": "nonsense:raises(): raised ValueError: no data",
    "nonsense:silent": "nonsense:silent(): raised AssertionError",
    "nonsense:unspeakable": "nonsense:unspeakable(): raised Unspeakable",
    "nonsense:no_error": "nonsense:no_error(): raised NoError: one of its own",
    "nonsense:leaves": "nonsense:leaves(): raised SystemExit: 0",
    "nonsense:leaves_in_words": "nonsense:leaves_in_words(): raised SystemExit: good bye",
    "nonsense:exhausts": "nonsense:exhausts(): raised MemoryError",
    "nonsense:deep": "nonsense:deep(): raised RecursionError: maximum recursion depth exceeded",
    "nonsense:talks": "nonsense:talks(): raised ValueError: x x x",
    "nonsense:takes": "nonsense:takes(): raised TypeError: takes() missing 1 required positional argument: 'one'",
    "nonsense:Fussy": "nonsense:Fussy(): raised TypeError: ",
    "nonsense:Wrong": "got Wrong",
    "nonsense:gives_nothing": "got None",
    "nonsense:gives_a_number": "got int",
    "nonsense:gives_a_class": "got the class Wrong",
    "nonsense:generates": "got generator",
    "nonsense:later": "got coroutine",
}
"""Nonsense where a function is called."""

RUNS = {
    "nonsense:gives_three": "got (builtin_function_or_method, list, int)",
    "nonsense:gives_no_function": "got (int, list)",
    "nonsense:gives_no_batches": "got (builtin_function_or_method, int)",
}
"""Nonsense where a loss function and batches are asked for."""

TRAINS = {
    "nonsense:raises": "nonsense:raises: while training: raised TypeError: raises() takes 0 positional arguments but 1",
    "nonsense:takes": "nonsense:takes: while training: raised GoldenError: nothing was recorded",
    "nonsense:leaves_when_training": "while training: raised SystemExit: 0",
    "nonsense:Wrong": "while training: raised TypeError: ",
}
"""Nonsense where a function trains with a trace."""

COMMANDS = {
    "--model of replay": (["replay", "run.dgrr", "--model"], SPECS | CALLED | RUNS),
    "--model of diff": (["diff", "run.dgrr", "--model"], SPECS | CALLED | RUNS),
    "--rule of replay": (["replay", "run.dgrr", "--rule"], SPECS | {"nonsense:Wrong": "got the class Wrong"}),
    "--train of test": (["test", "check", "run.dgrr", "--train"], SPECS | TRAINS),
    "MODULE:FUNCTION of verify-step": (["verify-step"], SPECS | CALLED | RUNS),
    "MODULE:FUNCTION of cache": (["cache", "warm"], SPECS | CALLED | RUNS),
}

CASES = [
    pytest.param(option, spec, text, id=f"{option}: {spec[:40]!r}")
    for option, (_, specs) in COMMANDS.items()
    for spec, text in specs.items()
]


@pytest.fixture
def dgrr(
    record_run: RecordRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Callable[..., Said]]:
    """Run in this process, in a folder with a trace and all the modules."""
    record_run(steps=2)
    for name, text in MODULES.items():
        (tmp_path / f"{name}.py").parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    known = set(sys.modules)

    def run(*arguments: str) -> Said:
        before = list(sys.path)
        code = main(list(arguments))
        assert sys.path == before
        return code, *capsys.readouterr()

    yield run
    for name in set(sys.modules) - known:
        if name.split(".")[0] in ("nonsense", "good", "wrong_syntax", "fails", "needs_more"):
            del sys.modules[name]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("option", "spec", "text"), CASES)
def test_nonsense_is_one_line(dgrr: Callable[..., Said], option: str, spec: str, text: str) -> None:
    code, out, err = dgrr(*COMMANDS[option][0], spec)
    assert (code, out) == (1, "")
    assert err.startswith(f"dgrr: argument {option.split(' of ')[0]}: ")
    assert text in err
    assert (spec if ":" in spec and "MODULE" not in text else repr(spec)) in err
    assert err.count("\n") == 1
    assert len(err) < 1000


@pytest.mark.parametrize(
    ("name", "verdict", "text"),
    [
        ("failing_loss", "gradient", "raised SystemExit: 0"),
        ("failing_batches", "data", "raised OSError: [Errno 5] the disk is gone"),
        ("loss_of_no_var", "gradient", "raised GradientError: loss_fn: expected it to return a scalar Var, got str"),
    ],
)
def test_a_model_that_fails_later(dgrr: Callable[..., Said], name: str, verdict: str, text: str) -> None:
    """To a replay that is a finding, as any model that is not the one of the run."""
    params = {"w": np.ones(3)}
    Trainer(lambda p, x: (p["w"] * x).sum(), params, SGD(0.1), trace="ones.dgrr").fit([np.ones(3)], steps=1)
    code, out, err = dgrr("replay", "ones.dgrr", "--model", f"nonsense:{name}")
    assert (code, out) == (5, "")
    assert f"{verdict}: step 0: " in err
    assert text.removeprefix("raised ") in err
    code, out, err = dgrr("diff", "ones.dgrr", "--model", f"nonsense:{name}")
    assert (code, out) == (1, "")
    assert err == f"dgrr: argument --model: nonsense:{name}: while computing: {text}\n"


@pytest.mark.parametrize("command", ["replay", "diff"])
def test_a_model_may_import_late(dgrr: Callable[..., Said], command: str) -> None:
    params = {"w": np.ones(3)}
    Trainer(lambda p, x: (p["w"] * x).sum(), params, SGD(0.1), trace="ones.dgrr").fit([np.ones(3)], steps=1)
    assert dgrr(command, "ones.dgrr", "--model", "nonsense:imports_late")[0] == 0


@pytest.mark.parametrize("option", COMMANDS)
def test_ctrl_c_at_an_import(dgrr: Callable[..., Said], option: str) -> None:
    assert dgrr(*COMMANDS[option][0], "interrupted_at_import:make") == (130, "", "dgrr: interrupted\n")


@pytest.mark.parametrize("option", [option for option in COMMANDS if not option.startswith("--rule")])
def test_ctrl_c_in_a_function(dgrr: Callable[..., Said], option: str) -> None:
    name = "interrupted_when_training" if option == "--train of test" else "interrupted"
    assert dgrr(*COMMANDS[option][0], f"nonsense:{name}") == (130, "", "dgrr: interrupted\n")


@pytest.mark.parametrize("command", ["replay", "diff"])
def test_ctrl_c_while_replaying(dgrr: Callable[..., Said], command: str) -> None:
    code, _, err = dgrr(command, "run.dgrr", "--model", "nonsense:loss_that_is_interrupted")
    assert (code, err) == (130, "dgrr: interrupted\n")


def test_dotted_names(dgrr: Callable[..., Said]) -> None:
    code, _, err = dgrr("replay", "run.dgrr", "--model", "good.deep:Runs.run")
    assert code == 5
    assert "data: step 0: the batch is not the one that was recorded" in err


def test_a_program_is_told_too(dgrr: Callable[..., Said]) -> None:
    code, out, err = dgrr("replay", "run.dgrr", "--model", "nonsense:leaves", "--json")
    assert (code, err) == (1, "")
    said = json.loads(out)
    assert (said["verdict"], said["exit_code"], said["result"]) == ("usage", 1, None)
    assert said["error"] == "argument --model: nonsense:leaves(): raised SystemExit: 0"

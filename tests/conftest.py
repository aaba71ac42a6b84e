"""What every test may rely on, and in which order tests run."""

import gc
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from dgrr.base import kernel_cache

from .batches import Batches
from .browser import browser as browser

os.environ.setdefault("DGRR_THREADS", "1")
"""There is a test process per core already; what is said of several threads sets their number itself."""

os.environ.setdefault("DGRR_CACHE_DIR", str(kernel_cache.folder()))
"""Where the home folder is another, as in pytester's projects, kernels are found all the same."""

settings.register_profile("dgrr", deadline=None)  # kernels compile on first use, and machines are shared
settings.load_profile("dgrr")


TESTS = Path(__file__).parent

COMPILES = "tape/numerics/test_ir.py"
"""The tests that compile every kernel, to read it: they come first, so that in a fresh checkout all others load."""

QUICK = (
    "house/test_tiny.py",
    "runtime/captured/test_captured_errors.py",
    "runtime/data/test_data.py",
    "runtime/data/test_choices.py",
    "runtime/data/test_maps.py",
    "runtime/data/test_streams.py",
    "runtime/ir/formats/test_dot.py",
    "runtime/ir/test_verify.py",
    "runtime/lower/test_arena.py",
    "runtime/lower/test_layout.py",
    "runtime/lower/test_plan.py",
    "runtime/optim/test_clip.py",
    "runtime/step/",
    "runtime/training/test_progress.py",
    "runtime/training/test_trainer.py",
    "tape/graph/",
    "tape/inspect/",
    "tape/nn/test_layers.py",
    "tape/nn/test_state_dict.py",
    "tape/numerics/basic/",
    "tape/numerics/engine/test_machine.py",
    "tape/numerics/test_exact_fma.py",
    "tape/ops/test_ops.py::test_property[reference-",
    "tape/record/",
    "tape/test_errors.py",
    "tape/test_tape.py",
    "tape/transforms/test_transforms.py",
    "tape/values/",
    "tape/var/",
    "trace/cli/test_cli.py::test_names_that",
    "trace/golden/test_sidecar.py",
    "trace/v1/test_golden.py",
    "trace/comparing/test_compare.py",
    "trace/v2/read/test_reader.py",
    "trace/v2/write/test_recorder.py",
)
"""What is marked ``quick``, as beginnings of names below this folder: of every room what is short and says most."""

LONG = (
    "crash/test_crash_matrix.py",
    "fuzz/test_traces.py",
    "golden/test_bits.py::test_a_captured_step_meets_the_file[",
    "golden/test_bits.py::test_the_bits_are_those_of_the_file[",
    "golden/test_bits.py::test_the_environment_is_the_one_asked_for[",
    "golden/test_sources.py",
    "house/test_bench.py",
    "house/test_examples.py",
    "house/test_optimized.py",
    "house/test_read_only.py",
    "runtime/lower/passes/test_passes_equal.py",
    "tape/numerics/engine/test_environment.py",
    "tape/numerics/engine/test_sources.py",
    "tape/numerics/test_interrupts.py",
    "tape/ops/linear/test_gemm_machine.py",
    "tape/ops/test_ops.py::test_property[captured-",
    "tape/ops/test_ops.py::test_property[masks-",
    "tape/ops/test_ops.py::test_property[third order-",
    "base/test_system.py",
    "trace/cli/test_demo.py",
    "trace/v1/test_damage.py",
    "trace/v2/read/test_damage.py",
    "trace/v2/write/test_recover.py::test_every_truncation",
)
"""What is left out where nothing is chosen: whole trainings, every bit of a file damaged, other CPUs, kills."""

NEVER_LONG = ("[default]",)
"""Ends of names: of the golden digests, those of the CPU at hand."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Say how much is run."""
    parser.addoption("--all-cpus", action="store_true", help="foreign CPUs compute all golden digests (slow)")
    parser.addoption("--long", action="store_true", help="run the longest tests too, as where files or marks are named")


def pytest_configure(config: pytest.Config) -> None:
    """Leave nothing out where tests are chosen. Processes of pytest-xdist do as the first one says."""
    chosen = config.args_source is not pytest.Config.ArgsSource.TESTPATHS
    if not hasattr(config, "workerinput") and (chosen or config.option.markexpr or config.option.keyword):
        config.option.long = True


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Read only the files of quick tests where only these are asked for: importing all takes as long as they do."""
    if config.option.markexpr != "quick" or collection_path.suffix != ".py":
        return None
    name = collection_path.relative_to(TESTS).as_posix()
    return None if any(name.startswith(quick.split("::")[0]) for quick in QUICK) else True


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Batches:
    """Hand out tests in batches."""
    return Batches(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the quick tests, leave out the long ones, and put those that compile first."""
    for item in items:
        if item.nodeid.removeprefix("tests/").startswith(QUICK):
            item.add_marker("quick")
    if not config.option.long:
        config.hook.pytest_deselected(items=[item for item in items if is_long(item.nodeid)])
        items[:] = [item for item in items if not is_long(item.nodeid)]
    items.sort(key=lambda item: item.path != TESTS / COMPILES)


def is_long(nodeid: str) -> bool:
    """Whether a test is left out where nothing is chosen."""
    return nodeid.removeprefix("tests/").startswith(LONG) and not nodeid.endswith(NEVER_LONG)


@pytest.fixture(scope="session", autouse=True)
def ctrl_c_works() -> Iterator[None]:
    """A run that a shell started in the background ignores SIGINT, and so would every process it starts."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


@pytest.fixture
def rewritten_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs may be written, run and written again within a second.

    Python takes a file of the same second and size for the one whose bytecode it keeps; so it keeps none.
    """
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")


def pytest_collection_finish() -> None:
    """Keep all that was collected out of the collector's sight, which else goes through it time and again."""
    gc.collect()
    gc.freeze()

"""The plugin of pytest: the fixture ``golden_trace``, the marker ``golden``, and what a run says of golden files.

pytest loads this module in every run, also in those without a golden trace: what it needs of dgrr is imported when a
test takes the fixture.
"""

import os
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from .names import SUFFIX, file_stem, module_folder
from .results import Results
from .settings import FOLDER, UPDATES, Settings, in_ci, update_of

if TYPE_CHECKING:
    from .failure import Commands
    from .recording import GoldenRecording
    from .traces import GoldenTraces

FIXTURE = "golden_trace"

_SETTINGS = pytest.StashKey[Settings]()
_RESULTS = pytest.StashKey[Results]()
_TRACES = pytest.StashKey["GoldenTraces"]()

_MARKER = (
    "golden(policy='bitwise', every='op', at=None): how close runs must be to their golden traces ('bitwise', 'ulp=4', "
    "'rtol=1e-5,atol=1e-8', or a dict of tensor patterns to these), and at which steps ops are recorded"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options and settings of golden traces."""
    group = parser.getgroup("dgrr", "golden traces")
    every = "write every golden file with which a run does not agree"
    missing = "write the golden files that are missing"
    group.addoption("--dgrr-update", action="store_const", const="all", dest="dgrr_update", help=every)
    # an option of its own, so that the path behind a bare --dgrr-update is not taken for its value
    group.addoption("--dgrr-update=missing", action="store_const", const="missing", dest="dgrr_update", help=missing)
    group.addoption("--dgrr-dir", metavar="FOLDER", help=f"where golden files lie; default: {FOLDER}")
    below = f"where golden files lie, below the root of the project; default: {FOLDER}"
    parser.addini("dgrr_dir", below, default=FOLDER)
    parser.addini("dgrr_update", f"which golden files are written: {', '.join(UPDATES)}", default=UPDATES[0])


def pytest_configure(config: pytest.Config) -> None:
    """Read the settings. Raises UsageError for one that there is not."""
    config.addinivalue_line("markers", _MARKER)
    try:
        update = update_of(config.getoption("dgrr_update") or config.getini("dgrr_update"))
    except ValueError as error:
        raise pytest.UsageError(str(error)) from None
    given = config.getoption("dgrr_dir")
    folder = config.rootpath / config.getini("dgrr_dir") if given is None else config.invocation_params.dir / given
    config.stash[_SETTINGS] = Settings(Path(os.path.normpath(folder)), update, in_ci())
    config.stash[_RESULTS] = Results(whole=_is_worker(config) or _collects_all(config))


def _is_worker(config: pytest.Config) -> bool:
    """Whether this process runs tests for another one, as those of pytest-xdist do."""
    return hasattr(config, "workeroutput")


def _collects_all(config: pytest.Config) -> bool:
    """Whether the command line leaves no test of the project out."""
    source, sources = config.args_source, pytest.Config.ArgsSource
    here = config.invocation_params.dir == config.rootpath
    whole = source is sources.TESTPATHS or (here and source is not sources.ARGS)
    narrowing = ("keyword", "markexpr", "lf", "ignore", "ignore_glob", "deselect", "collectonly", "setuponly")
    return whole and not any(config.getoption(name, None) for name in narrowing)


# ------------------------------------------------------------------ which tests there are


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Spare the golden files of a module that is skipped as a whole, or cannot be imported."""
    report = yield
    if not report.passed and collector.path.is_file():
        collector.config.stash[_RESULTS].take(_folder(collector), collector.nodeid)
    return report


def pytest_itemcollected(item: pytest.Item) -> None:
    """Note which tests have golden traces."""
    if FIXTURE in getattr(item, "fixturenames", ()):
        item.config.stash[_RESULTS].take(_folder(item), item.nodeid)


def pytest_deselected(items: list[pytest.Item]) -> None:
    """What is left is not every test."""
    if items:
        items[0].config.stash[_RESULTS].whole = False


def _folder(node: pytest.Item | pytest.Collector) -> str:
    """Where the golden files of a module's tests lie."""
    return module_folder(node.path, node.config.stash[_SETTINGS].folder, node.config.rootpath)


# ------------------------------------------------------------------ a test


@pytest.fixture
def golden_trace(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> "GoldenTraces":
    """Golden traces of the test: ``Trainer(…, trace=golden_trace())``; once it ends, each run is compared."""
    from .asked import asked
    from .traces import GoldenTest, GoldenTraces

    item: pytest.Item = cast(Any, request).node  # which pytest does not type
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if _is_worker(request.config) else base
    try:
        wanted = asked((mark.args, mark.kwargs) for mark in item.iter_markers("golden"))
    except ValueError as error:
        pytest.fail(str(error), pytrace=False)
    stem = file_stem(item.nodeid.partition("::")[2])
    test = GoldenTest(item.nodeid, _folder(item), stem, shared / "dgrr", shared / "dgrr-claims")
    traces = item.stash[_TRACES] = GoldenTraces(test, wanted)
    return traces


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Hold the runs of a test that has passed so far against their golden files; if they differ, it has failed."""
    result = yield
    if (traces := item.stash.get(_TRACES, None)) is not None:
        texts = _failures(item, traces)
        if texts:
            pytest.fail("\n\n".join(texts), pytrace=False)
    return result


def _failures(item: pytest.Item, traces: "GoldenTraces") -> list[str]:
    """What is wrong with each golden file of a test."""
    results, recordings = item.config.stash[_RESULTS], list(traces)
    results.finished.add(item.nodeid)
    results.used.update(made.name for made in recordings)
    if not recordings:
        return [f"the test takes {FIXTURE} and records nothing: give it to a run, as trace={FIXTURE}()"]
    return [text for made in recordings if (text := _failure(item, made))]


def _failure(item: pytest.Item, made: "GoldenRecording") -> str:
    """Hold one run against its golden file, or write that; what is wrong, if anything is."""
    from .errors import GoldenError
    from .failure import failure
    from .keeping import keep

    settings, counts = item.config.stash[_SETTINGS], item.config.stash[_RESULTS].counts
    golden = settings.folder / f"{made.name}{SUFFIX}"
    try:
        made.require_sealed()
        kept = keep(golden, made.path, made.policy, settings.update, write_missing=not settings.in_ci)
    except GoldenError as error:
        counts["failed"] += 1
        short = item.config.getoption("tbstyle") in ("short", "line", "native")
        return failure(error, _commands(item, golden, made.path), short=short)
    counts[kept] += 1
    return ""


def _commands(item: pytest.Item, golden: Path, present: Path) -> "Commands":
    """What to type where the tests were started."""
    from .failure import Commands

    config = item.config
    where = config.getoption("dgrr_dir")
    test = f"{_shown(config, item.path)}::{item.nodeid.partition('::')[2]}"
    accept = ("pytest", "--dgrr-update", *([] if where is None else [f"--dgrr-dir={where}"]), test)
    return Commands(_shown(config, golden), _shown(config, present), accept)


def _shown(config: pytest.Config, path: Path) -> str:
    """A path as it is typed where the tests were started."""
    start = config.invocation_params.dir
    return str(path.relative_to(start) if path.is_relative_to(start) else path)


# ------------------------------------------------------------------ the run


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker sends what became of its golden files."""
    if _is_worker(session.config):
        session.config.workeroutput["dgrr"] = session.config.stash[_RESULTS].to_dict()  # type: ignore[attr-defined]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Add what a worker of pytest-xdist sent; of one that broke down it is not known which files its tests used."""
    results: Results = node.config.stash[_RESULTS]
    sent = getattr(node, "workeroutput", {}).get("dgrr")
    if sent is None or error:
        results.whole = False
    else:
        results.add(sent)


def pytest_terminal_summary(
    terminalreporter: "pytest.TerminalReporter", exitstatus: int, config: pytest.Config
) -> None:
    """One line of what became of the golden files, the unused ones, and what git should know of the first."""
    settings, results = config.stash[_SETTINGS], config.stash[_RESULTS]
    ran = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
    unused = results.unused(settings.folder) if ran else []
    if line := results.summary(unused):
        terminalreporter.write_line(line)
    for name in unused:
        terminalreporter.write_line(f"  unused: {_shown(config, settings.folder / name)}{SUFFIX}")
    if results.counts["written"] and not _git_knows(config.rootpath):
        terminalreporter.write_line(HINT)


HINT = """dgrr: golden files are binary, and the texts beside them have the same line ends everywhere; add this to
.gitattributes:
  *.dgrr binary
  *.dgrr.txt text eol=lf"""


def _git_knows(root: Path) -> bool:
    try:
        return f"*{SUFFIX} " in (root / ".gitattributes").read_text()
    except OSError:
        return False

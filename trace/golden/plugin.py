"""The plugin of pytest: the fixture ``golden_trace``, the marker ``golden``, and what a run says of golden files.

pytest loads this module in every run, also in those without a golden trace: what it needs of dgrr is imported when a
test takes the fixture.
"""

import os
from collections.abc import Generator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import pytest

from .names import SUFFIX, file_stem, module_folder
from .places import TwoSetsError, golden_folder, require_one_set, root_of
from .results import Results
from .settings import FOLDER, UPDATES, Settings, Update, in_ci, update_of

if TYPE_CHECKING:
    from .failure import Commands
    from .recording import GoldenRecording
    from .traces import GoldenTraces

FIXTURE = "golden_trace"

_SETTINGS = pytest.StashKey[Settings]()
_DELETES = pytest.StashKey[bool]()
_RESULTS = pytest.StashKey[Results]()
_FOLDER = pytest.StashKey[Path]()
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
    below = f"where golden files lie, below the folder of these settings; default: {FOLDER}"
    parser.addini("dgrr_dir", below, default="")
    parser.addini("dgrr_update", f"which golden files are written: {', '.join(UPDATES)}", default=UPDATES[0])


def pytest_configure(config: pytest.Config) -> None:
    """Read the settings. Raises UsageError for one that there is not."""
    config.addinivalue_line("markers", _MARKER)
    try:
        update = update_of(config.getoption("dgrr_update") or config.getini("dgrr_update"))
    except ValueError as error:
        raise pytest.UsageError(str(error)) from None
    config.stash[_SETTINGS] = _settings(config, update)
    config.stash[_DELETES] = _deletes(config, update)
    config.stash[_RESULTS] = Results(whole=_is_worker(config) or _collects_all(config))


def _settings(config: pytest.Config, update: Update) -> Settings:
    option, setting = config.getoption("dgrr_dir"), config.getini("dgrr_dir")
    project = None if config.inipath is None else config.inipath.parent
    below = (project or config.rootpath) / (setting or FOLDER)
    folder = below if option is None else config.invocation_params.dir / option
    named: Literal["option", "setting"] | None = "option" if option is not None else "setting" if setting else None
    return Settings(Path(os.path.normpath(folder)), named, project, update, in_ci())


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
        _take(collector)
    return report


def pytest_itemcollected(item: pytest.Item) -> None:
    """Note which tests have golden traces, and where unused ones are deleted, which tests there are."""
    if FIXTURE in getattr(item, "fixturenames", ()):
        _take(item)
    if item.config.stash[_DELETES]:
        _count(item)


def pytest_deselected(items: list[pytest.Item]) -> None:
    """What is left is not every test."""
    if items:
        items[0].config.stash[_RESULTS].whole = False


def _golden(node: pytest.Item | pytest.Collector) -> Path:
    """The folder of golden files that those of a module lie in. Raises TwoSetsError."""
    settings = node.config.stash[_SETTINGS]
    if settings.named is None:
        return golden_folder(node.path, settings.project)
    if settings.named == "setting":
        require_one_set(node.path, settings.folder, root_of(node.path, settings.project))
    return settings.folder


def _module(node: pytest.Item | pytest.Collector, golden: Path) -> str:
    """Where the golden files of a module's tests lie, below the folder of golden files."""
    settings = node.config.stash[_SETTINGS]
    root = golden.parents[1] if settings.named is None else root_of(node.path, settings.project)
    return module_folder(node.path, golden, root)


def _take(node: pytest.Item | pytest.Collector) -> None:
    """Note what may use golden files of the project at hand."""
    settings = node.config.stash[_SETTINGS]
    with suppress(TwoSetsError):  # which the test is told
        if (golden := _golden(node)) == settings.folder:
            node.config.stash[_RESULTS].take(_module(node, golden), node.nodeid)


def _deletes(config: pytest.Config, update: Update) -> bool:
    """Whether golden files that no test has used are deleted: of modules of which no part alone is asked for."""
    return update == "all" and not config.getoption("lf", None) and not any("::" in arg for arg in config.args)


def _count(item: pytest.Item) -> None:
    """Note a test of a module whose golden files are in a folder that no other module can have."""
    settings = item.config.stash[_SETTINGS]
    with suppress(TwoSetsError):
        golden = _golden(item)
        folder = _module(item, golden)
        modules = (above / f"{folder}.py" for above in {golden.parent, root_of(item.path, settings.project)})
        if golden == settings.folder and [path for path in modules if path.exists()] == [item.path]:
            item.config.stash[_RESULTS].tests.setdefault(folder, set()).add(item.nodeid)


# ------------------------------------------------------------------ a test


@pytest.fixture
def golden_trace(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> "GoldenTraces":
    """Golden traces of the test: ``Trainer(…, trace=golden_trace())``; once it ends, each run is compared."""
    from .marker import marker_of
    from .traces import GoldenTest, GoldenTraces

    item: pytest.Item = cast(Any, request).node  # which pytest does not type
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if _is_worker(request.config) else base
    try:
        wanted = marker_of((mark.args, mark.kwargs) for mark in item.iter_markers("golden"))
        golden = item.stash[_FOLDER] = _golden(item)
    except (ValueError, TwoSetsError) as error:
        pytest.fail(str(error), pytrace=False)
    stem = file_stem(item.nodeid.partition("::")[2])
    own = "" if golden == item.config.stash[_SETTINGS].folder else sha256(str(golden).encode()).hexdigest()[:8]
    kept, claims = shared / "dgrr" / own, shared / "dgrr-claims" / own  # two projects may have one name
    test = GoldenTest(item.nodeid, _module(item, golden), stem, kept, claims)
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
    if item.config.stash[_DELETES]:
        item.config.stash[_RESULTS].ended.add(item.nodeid)
    return result


def _failures(item: pytest.Item, traces: "GoldenTraces") -> list[str]:
    """What is wrong with each golden file of a test."""
    results, recordings = item.config.stash[_RESULTS], list(traces)
    results.finished.add(item.nodeid)
    if item.stash[_FOLDER] == item.config.stash[_SETTINGS].folder:
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
    golden = item.stash[_FOLDER] / f"{made.name}{SUFFIX}"
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
    deleted = _deleted(config, results) if ran else []
    unused = results.unused(settings.folder) if ran else []
    if line := results.summary(unused):
        terminalreporter.write_line(line)
    for line in deleted:
        terminalreporter.write_line(line)
    for name in unused:
        terminalreporter.write_line(f"  unused: {_shown(config, settings.folder / name)}{SUFFIX}")
    if results.counts["written"] and not _git_knows(config.rootpath):
        terminalreporter.write_line(HINT)


def _deleted(config: pytest.Config, results: Results) -> list[str]:
    """Delete the golden files of no test; their paths, and why one could not be deleted."""
    folder, lines = config.stash[_SETTINGS].folder, list[str]()
    if not (names := results.abandoned(folder)):
        return lines
    from .errors import GoldenError
    from .keeping import delete

    for name in names:
        golden = folder / f"{name}{SUFFIX}"
        try:
            delete(golden)
        except GoldenError as error:
            lines.append(f"golden trace {_shown(config, golden)}: {error}")
        else:
            results.counts["deleted"] += 1
            lines.append(f"  deleted: {_shown(config, golden)}")
    return lines


HINT = """dgrr: golden files are binary, and the texts beside them have the same line ends everywhere; add this to
.gitattributes:
  *.dgrr binary
  *.dgrr.txt text eol=lf"""


def _git_knows(root: Path) -> bool:
    try:
        return f"*{SUFFIX} " in (root / ".gitattributes").read_text()
    except OSError:
        return False

"""MODULE:FUNCTION of a command line: what it names, and what comes of calling it.

Modules are those of the current folder and the installed ones. Whatever a user's code raises is a wrong command line,
in one line that names the option; Ctrl-C alone goes its way.
"""

import os
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from functools import reduce
from importlib import import_module
from inspect import iscoroutine
from textwrap import shorten
from typing import TYPE_CHECKING, Any, TypeVar, cast

from .arguments import FUNCTION, UsageError

if TYPE_CHECKING:
    from ...runtime import CapturedStep
    from ...runtime.optim import Rule

T = TypeVar("T")

_LONGEST = 500  # characters of an error that a user's code raises


def load(option: str, spec: str, what: str = "FUNCTION") -> object:
    """What ``MODULE:FUNCTION`` names; names with dots are looked up part by part.

    Args:
        option: the option that it was given for, as errors name it, such as ``--model``.
        spec: what was given.
        what: what stands behind the colon, as errors name it.

    Raises UsageError if there is no such module or name, or if the module raises when it is imported.
    """
    module, _, name = spec.partition(":")
    if not _is_dotted(module) or not all(part.isidentifier() for part in name.split(".")):
        example = "train:make" if what == "FUNCTION" else "train:Rule"
        raise UsageError(f"argument {option}: expected MODULE:{what}, such as {example}, got {spec!r}")
    with current_folder():
        found = _imported(f"argument {option}: {spec}", module)
        return _attribute(f"argument {option}: {spec}", found, name)


def called(option: str, spec: str) -> Any:
    """What the function that ``MODULE:FUNCTION`` names returns without arguments. Raises UsageError."""
    function = load_function(option, spec)
    made = guarded(f"argument {option}: {spec}()", function)
    if iscoroutine(made):
        made.close()  # or Python warns that nobody awaited it
    return made


def load_function(option: str, spec: str) -> Callable[..., Any]:
    """The function that ``MODULE:FUNCTION`` names. Raises UsageError."""
    found = load(option, spec)
    if not callable(found):
        raise UsageError(f"argument {option}: {spec}: expected a function, got {described(found)}")
    return found


def load_run(spec: str) -> tuple[Callable[..., Any], Any]:
    """The loss function and the batches of a run, as the function of ``--model`` returns them. Raises UsageError."""
    made = called("--model", spec)
    if not _is_run(made):
        raise UsageError(
            f"argument --model: {spec}(): expected (loss_fn, batches), a function and an iterable, "
            f"got {described(made)}"
        )
    return made[0], made[1]


def load_step(spec: str) -> "CapturedStep":
    """The step that the function of ``MODULE:FUNCTION`` returns. Raises UsageError."""
    from ...runtime import CapturedStep  # compiled, and so loaded only where it is needed

    step = called(FUNCTION, spec)
    if not isinstance(step, CapturedStep):
        expected = "expected a CapturedStep, as dgrr.runtime.capture makes it"
        raise UsageError(f"argument {FUNCTION}: {spec}(): {expected}, got {described(step)}")
    return step


def load_rules(specs: Sequence[str]) -> "list[type[Rule]]":
    """The classes of rules that ``--rule`` names. Raises UsageError."""
    return [_load_rule(spec) for spec in specs]


def _load_rule(spec: str) -> "type[Rule]":
    from ..replaying.replay_state import is_rule  # compiled, likewise

    found = load("--rule", spec, "NAME")
    if not is_rule(found):
        expected = "expected a class of rules, as ops_rule makes it"
        raise UsageError(f"argument --rule: {spec}: {expected}, got {described(found)}")
    return found


def guarded(where: str, run: Callable[[], T]) -> T:
    """What ``run``, which is a user's code or calls it, returns; UsageError for whatever it raises but Ctrl-C."""
    with current_folder():
        try:
            return run()
        except (KeyboardInterrupt, UsageError):
            raise
        except BaseException as error:
            raise UsageError(f"{where}: raised {_raised(error)}") from error


@contextmanager
def users_code() -> Generator[None]:
    """Run what may import more of the current folder; a ValueError is a wrong command line."""
    with current_folder():
        try:
            yield
        except ValueError as error:
            raise UsageError(str(error)) from error


@contextmanager
def current_folder() -> Generator[None]:
    """Let modules of the current folder be imported."""
    folder = os.getcwd()
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        with suppress(ValueError):  # a module may have taken it out
            sys.path.remove(folder)


def described(value: object) -> str:
    """What was given in the place of something else, by its type."""
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    kind = type(value).__name__
    if isinstance(value, tuple | list) and len(parts := cast(Sequence[object], value)) < 5:
        return f"({', '.join(type(part).__name__ for part in parts)})"
    return kind


def _is_dotted(module: str) -> bool:
    """Whether it can be a module's name; files may have names that are no identifiers, such as my-model."""
    parts = module.split(".")
    return all(parts) and parts[-1] != "py" and not any(c in "/\\\0" for c in module)


def _imported(where: str, module: str) -> object:
    try:
        return import_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}."):
            text = f"there is no module {error.name!r} in the current folder or among installed modules"
            raise UsageError(f"{where}: {text}") from None
        raise UsageError(f"{where}: importing {module} raised {_raised(error)}") from error


def _attribute(where: str, module: object, name: str) -> object:
    try:
        return reduce(getattr, name.split("."), module)
    except AttributeError as error:
        raise UsageError(f"{where}: {shorten(str(error), _LONGEST)}") from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise UsageError(f"{where}: raised {_raised(error)}") from error


def _is_run(made: object) -> bool:
    if not isinstance(made, tuple | list) or len(pair := cast(Sequence[object], made)) != 2:
        return False
    iterable = any(hasattr(pair[1], name) for name in ("__iter__", "__getitem__"))
    return iterable and not isinstance(pair[1], type) and callable(pair[0])


def _raised(error: BaseException) -> str:
    """``ValueError: no data``, in one line."""
    try:
        text = shorten(str(error), _LONGEST, placeholder=" …")
    except Exception:  # its own, of a user's class
        text = ""
    return f"{type(error).__name__}{': ' if text else ''}{text}"

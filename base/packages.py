"""Packages that extras of this one bring, and not everybody has."""

from importlib import import_module
from typing import Any

_EXTRAS = {
    "bokeh": "report",
    "ml_dtypes": "small-floats",
    "matplotlib": "plot",
    "mpi4py": "mpi",
    "pyarrow": "arrow",
    "tensorboardX": "tensorboard",
}
"""Package → the extra that brings it, where it has another name."""


def package(call: str, module: str, instead: str = "") -> Any:
    """A module of such a package, for a function of that name.

    Raises ModuleNotFoundError that says how to get it, or what to do instead.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        name = module.partition(".")[0]
        if (error.name or "").partition(".")[0] != name:
            raise
        extra = _EXTRAS.get(name, name)
        text = f"{call}: expected {name} to be installed: pip install 'dgrr[{extra}]'{instead}"
        raise ModuleNotFoundError(text, name=name) from None

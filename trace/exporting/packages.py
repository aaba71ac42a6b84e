"""Packages that not everybody has."""

from importlib import import_module
from typing import Any

_EXTRAS = {"pandas": "pandas", "pyarrow": "arrow", "polars": "polars", "tensorboardX": "tensorboard"}
"""Package → the extra of dgrr that brings it."""


def package(call: str, module: str) -> Any:
    """A module of such a package. Raises ModuleNotFoundError that says how to get it."""
    name = module.partition(".")[0]
    try:
        import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        text = f"{call}: expected {name} to be installed: pip install 'dgrr[{_EXTRAS[name]}]'"
        raise ModuleNotFoundError(text, name=name) from None
    return import_module(module)

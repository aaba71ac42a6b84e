"""A project with golden traces, whose tests pytest runs in its place."""

import shutil

import pytest

from . import toy


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, rewritten_at_once: None) -> pytest.Pytester:
    """A project whose tests may import ``toy``, on a machine of a person."""
    monkeypatch.delenv("CI", raising=False)
    shutil.copy(toy.__file__, pytester.path / "toy.py")
    pytester.makeini("[pytest]\ntestpaths = tests\npythonpath = .\naddopts = -p no:cacheprovider --strict-markers")
    return pytester

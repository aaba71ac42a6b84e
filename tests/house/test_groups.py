"""Tests that share what one process made are run in one process."""

import os

import pytest


@pytest.mark.xdist_group("a group")
def test_groups_are_kept_together(request: pytest.FixtureRequest) -> None:
    """By pytest-xdist, which puts the group's name behind the test's; pytest 9.2 took it away again."""
    grouped = request.node.nodeid.endswith("@a group")
    assert grouped == ("PYTEST_XDIST_WORKER" in os.environ)

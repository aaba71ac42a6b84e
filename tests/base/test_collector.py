"""The collector rests inside the block, and afterwards does what it did before, whatever happened."""

import gc

import pytest

from dgrr.base.collector import collector_paused


@collector_paused()
def fails() -> None:
    assert not gc.isenabled()
    with collector_paused():
        pass
    assert not gc.isenabled()
    raise ValueError("inside")


@pytest.mark.parametrize("collects", [True, False])
def test_it_is_as_it_was_afterwards(collects: bool) -> None:
    before = gc.isenabled()
    (gc.enable if collects else gc.disable)()
    try:
        with pytest.raises(ValueError, match="inside"):
            fails()
        assert gc.isenabled() == collects
    finally:
        (gc.enable if before else gc.disable)()

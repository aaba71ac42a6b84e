"""What is said of a name that there is not."""

import pytest

from dgrr.base.suggest import SHOWN, close_to, did_you_mean, listing


@pytest.mark.parametrize(
    ("name", "known", "meant"),
    [
        ("batchnorm", ["BatchNorm", "GroupNorm"], "BatchNorm"),
        ("0.wieght", ["0.weight", "0.bias"], "0.weight"),
        ("quite another", ["BatchNorm"], None),
        ("w", [], None),
        ("", ["w"], None),
    ],
)
def test_the_name_that_was_meant(name: str, known: list[str], meant: str | None) -> None:
    assert close_to(name, known) == meant
    assert did_you_mean(name, known, "nn.{}") == ("" if meant is None else f"; did you mean nn.{meant}?")


def test_a_listing_is_short_and_has_each_name_once() -> None:
    names = [f"layer{i}" for i in range(SHOWN + 3)]
    shown = ", ".join(names[:SHOWN])
    assert listing("x", names + names) == f"{shown} and 3 more"
    assert listing("Layer14", names) == f"{shown} and 3 more; did you mean 'layer14'?"
    assert listing("x", []) == ""

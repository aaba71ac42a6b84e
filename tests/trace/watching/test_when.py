"""The first step is the right one, by a second account: what the loss function itself has noted of each step."""

from pathlib import Path
from typing import Any

import pytest

from dgrr.runtime import Keep
from dgrr.trace import when

from .noted import BATCHES, FIGURES, STEPS, Note, loss_fn, notes_of, records, trainer

KINDS = ("plain", "groups")
MODES = ("digest", "grads", "full")


@pytest.fixture(scope="module")
def notes() -> dict[str, list[Note]]:
    return {kind: notes_of(kind)[:-1] for kind in KINDS}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Path]:
    folder = tmp_path_factory.mktemp("runs")
    for kind in KINDS:
        for mode in MODES:
            keep: Any = Keep(folder / f"{kind}-{mode}.dgrr", record=mode, keyframe_every=10)  # type: ignore[arg-type]
            trainer(kind, keep).fit(BATCHES, steps=STEPS, progress=False)
    return {(kind, mode): folder / f"{kind}-{mode}.dgrr" for kind in KINDS for mode in MODES}


@pytest.mark.parametrize("figure", FIGURES)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_first_step(runs: Any, notes: Any, kind: str, mode: str, figure: str) -> None:
    signs = {sign: records(FIGURES[figure], notes[kind], sign) for sign in (1, -1)}
    assert any(signs.values()) or (figure, kind) == ("lr", "plain")
    for sign, found in signs.items():
        for step, threshold in {found[0], found[-1]} if found and (mode == "digest" or sign > 0) else ():
            condition = f"{'-' if sign < 0 else ''}({figure}) > {threshold!r}"
            answer = when(runs[kind, mode], condition, loss_fn, BATCHES)
            assert (answer.step, answer.first, answer.last, answer.untried) == (step, 0, step, 0), condition
            assert bool(answer)


@pytest.mark.parametrize("figure", ["loss", 'absmax("0.weight")', "absmax(h)"])
@pytest.mark.parametrize("mode", MODES)
def test_what_never_holds(runs: Any, mode: str, figure: str) -> None:
    answer = when(runs["plain", mode], f"{figure} > 1e300", loss_fn, BATCHES)
    assert (answer.step, answer.last, answer.node, dict(answer.figures), bool(answer)) == (
        None,
        STEPS - 1,
        None,
        {},
        False,
    )

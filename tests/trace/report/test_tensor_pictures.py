"""Pictures of params in a page: of which steps and tensors they are, and how much room they take."""

import re
import zlib
from base64 import b64decode
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dgrr.trace import open_trace, state_after, write_report
from dgrr.trace.report import pictures
from dgrr.trace.report.packing import Pack
from dgrr.trace.report.pictures import KINDS, LARGEST, TensorPictures, pictured
from dgrr.trace.v2.format.constants import TensorRole

from .conftest import STEPS, model_run, record
from .test_write import Page

ZERO = 100
"""The code of a cell of a picture whose element is zero; of what is above it codes are greater."""


def shown(page: Page, file: int) -> Any:
    """The codes of the pixels of an image."""
    found = re.search(rf'<script type="text/plain" id="array{file}">([^<]*)</script>', page.text)
    assert found is not None
    data = b64decode(found[1])
    width, height = (int.from_bytes(data[at : at + 4], "big") for at in (16, 20))
    start = data.index(b"IDAT") + 4
    lines = np.frombuffer(zlib.decompress(data[start : data.index(b"IEND")]), np.uint8).reshape(height, width + 1)
    return np.cumsum(lines[:, 1:], axis=0, dtype=np.uint8)


def signs(page: Page, file: int, shape: tuple[int, int]) -> Any:
    """Of each element whether its cell is blue, white or red; what is beyond the colours is left out, as NaN."""
    codes = shown(page, file)
    down, across = (n // of for n, of in zip(codes.shape, shape, strict=True))
    cells = codes[down // 4 :: down, across // 4 :: across].astype(np.float64)
    return np.where(cells > 2 * ZERO, np.nan, np.sign(cells - ZERO))


@pytest.fixture(scope="module")
def page(digits: Path, folder: Path) -> Page:
    write_report([digits], folder / "pictures.html")
    return Page(folder / "pictures.html")


def test_they_are_of_value_gradient_and_update(page: Page, digits: Path) -> None:
    found = page.data["runs"][0]["pictures"]
    assert found["params"] == ["0.weight", "0.bias", "2.weight", "2.bias"]
    assert found["steps"] == [0, 4, 7, 11, 14, 18, 21, 25, 28, 32, 35, 39] and found["steps"][-1] == STEPS - 1
    with open_trace(digits) as trace:
        for step, row in zip(found["steps"], found["rows"], strict=True):
            before = state_after(digits, step - 1) if step else trace.keyframe(0)
            after, grads = state_after(digits, step), trace.gradients(step)
            for name, of_param in zip(found["params"], row, strict=True):
                arrays = (before[name], grads[name], after[name] - before[name])
                for array, (file, said, _, least, greatest, mean, *counts) in zip(arrays, of_param, strict=True):
                    shape = (1, *array.shape) if array.ndim == 1 else array.shape
                    told = signs(page, found["files"][file], shape)
                    known = ~np.isnan(told)
                    assert known.mean() > 0.9
                    assert np.array_equal(told[known], np.sign(array).reshape(shape)[known])
                    expected = (array.min(), array.max(), array.astype(np.float64).mean())
                    assert (least, greatest, mean) == pytest.approx(expected, rel=1e-5)
                    assert counts == [int((array == 0).sum()), 0, 0]
                    assert said.startswith(f"{array.shape} float32: ")


def test_a_step_that_is_not_finite_has_pictures_and_equal_ones_are_kept_once(troubled: Path, folder: Path) -> None:
    write_report([troubled], folder / "pictures.html")
    found = Page(folder / "pictures.html").data["runs"][0]["pictures"]
    assert 15 in found["steps"]
    row = found["rows"][found["steps"].index(15)]
    values, gradients, updates = zip(*row, strict=True)
    assert values == updates == (None, None, None)  # by a rule that nobody knows
    assert gradients[2][1].endswith("1 NaN") and gradients[2][7] == 1
    assert gradients[2][2] == ["white 0, red 0.5, × 1 NaN"]
    dead = {row[0][1][0] for row in found["rows"]}
    assert len(dead) == 1
    assert len(found["files"]) == 1 + 1 + 2 + 1  # dead; wild as always and at step 12; the third as always and broken


def test_what_is_not_known_has_none_and_a_model_makes_it_known(
    digests: Path, page: Page, digits: Path, folder: Path
) -> None:
    write_report([digests], folder / "unknown.html")
    assert Page(folder / "unknown.html").data["runs"][0]["pictures"]["steps"] == []
    write_report([digests], folder / "made.html", make_run=model_run, rebuild=[])
    made = Page(folder / "made.html").data["runs"][0]["pictures"]
    found = page.data["runs"][0]["pictures"]
    assert (made["steps"], made["rows"]) == (found["steps"], found["rows"])


def test_one_number_needs_no_picture(folder: Path) -> None:
    params = {"scale": np.ones((), np.float32), "none": np.ones((0, 3), np.float32)}
    path = record(folder / "single.dgrr", params, 2, lambda step: {"grads": params})
    write_report([path], folder / "single.html")
    found = Page(folder / "single.html").data["runs"][0]["pictures"]
    assert found["files"] == []
    (_, scale, _), (_, none, _) = found["rows"][0]
    assert scale == [None, "() float32: 1", [], 1.0, 1.0, 1.0, 0, 0, 0]
    assert none == [None, "(0, 3) float32: no elements", [], None, None, None, 0, 0, 0]


@pytest.mark.parametrize("size", [1, 10, 1000, 9600, 10**6])
@pytest.mark.parametrize("params", [0, 1, 3, 50, 200, 5000])
@pytest.mark.parametrize("steps", [0, 1, 2, 40, 10_000])
def test_there_is_room_for_all(steps: int, params: int, size: int) -> None:
    kept = pictured(steps, [size] * params, special=range(3, 20_000))
    count = KINDS * kept.params * len(kept.steps)
    columns, rows = kept.size
    assert count <= pictures.MOST_PICTURES + KINDS * kept.params  # a special step beside the two
    assert count * min(size, columns * rows) <= pictures.MOST_CELLS
    assert len(kept.steps) <= pictures.MOST_STEPS + pictures.MOST_SPECIAL
    if steps:
        assert {0, steps - 1} <= set(kept.steps) <= set(range(steps))
    assert 1 <= columns <= LARGEST[0] and 1 <= rows <= LARGEST[1]
    assert kept.params == min(params, 200)
    if steps > 3:
        assert 3 in kept.steps


def test_pictures_of_a_model_of_many_params_take_three_megabytes() -> None:
    rng, names = np.random.default_rng(0), [f"blocks.{i}.weight" for i in range(200)]
    specs = [SimpleNamespace(name=name, role=TensorRole.PARAM, shape=(64, 64)) for name in names]
    trace: Any = SimpleNamespace(schema=SimpleNamespace(tensors=specs))
    found = TensorPictures(trace, 1000, [])
    for step in (0, 999):
        arrays = [{name: rng.standard_normal((64, 64)).astype(np.float32) for name in names} for _ in range(3)]
        walked: Any = SimpleNamespace(
            view=SimpleNamespace(step=step), before=arrays[0], grads=arrays[1], after=arrays[2]
        )
        found.add(walked)
    pack = Pack()
    assert len(found.packed(pack)["files"]) == 1200
    assert 2_000_000 < sum(map(len, pack.texts)) < 3_500_000

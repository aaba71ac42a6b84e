"""Pictures of tensors: which cell stands for which element, what the lines say, and how large the pages are."""

import re
import struct
import zlib
from base64 import b64decode
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from dgrr.screen.pictures import Picture
from dgrr.screen.pictures.cell_grid import CellGrid
from dgrr.screen.pictures.codes import MARKS, PALETTE
from dgrr.screen.pictures.image import png
from dgrr.screen.pictures.summary import Summary
from dgrr.screen.showing import rendered
from dgrr.tape import Tape

ZERO, GAP, FIRST_MARK = 100, 201, 202
RNG = np.random.default_rng(0)


# ------------------------------------------------------------------ what is said


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (np.array([[0.0, -1.5], [3.0, 0.0]]), "(2, 2) float64: -1.5 to 3, mean 0.375; 2 of 4 zero, all finite"),
        (
            np.array([1, np.nan, np.inf, -np.inf], np.float32),
            "(4,) float32: 1 to 1, mean 1; 0 of 4 zero, 1 NaN, 2 infinite",
        ),
        (np.full(3, np.nan), "(3,) float64: none finite; 0 of 3 zero, 3 NaN"),
        (np.array([True, False]), "(2,) bool: False to True, mean 0.5; 1 of 2 zero"),
        (np.array([2**62 + 1, 0]), "(2,) int64: 0 to 4611686018427387905, mean 2.306e+18; 1 of 2 zero"),
        (np.array([1e308, 1e308]), "(2,) float64: 1e+308 to 1e+308, mean 1e+308; 0 of 2 zero, all finite"),
        (np.zeros((0, 3)), "(0, 3) float64: no elements"),
        (np.array(2.5, np.float32), "() float32: 2.5"),
        (np.array([[7]]), "(1, 1) int64: 7"),
        (np.array(np.nan), "() float64: NaN"),
        (np.array(-np.inf), "() float64: 1 infinite"),
    ],
)
def test_a_line_says_what_is_in_a_tensor(array: Any, said: str) -> None:
    assert str(Summary.of(array)) == said
    assert Picture(array).to_html().count(said) == 1 + (array.size > 1)  # of the image too, for those who see none
    assert rendered(Picture(array), 160).splitlines()[0] == said


# ------------------------------------------------------------------ cells


def test_the_last_axes_are_rows_and_columns() -> None:
    grid = CellGrid.of(np.array([[0, 1, 2], [-2, -1, 0]]), 80, 80).grid
    assert grid.tolist() == [[100, 150, 200], [0, 50, 100]]


def test_leading_axes_are_facets_with_gaps_between_them() -> None:
    array = np.arange(1, 2 * 3 * 2 * 2 * 2 + 1).reshape(2, 3, 2, 2, 2)  # the second axis downwards, the others across
    found = {tuple(map(int, place)) for place in np.argwhere(CellGrid.of(array, 80, 80).grid != GAP)}
    grid = CellGrid.of(array, 80, 80).grid
    assert grid.shape == (3 * 3 - 1, (2 * 3 - 1) * 2 + 2)
    assert len(found) == array.size
    order = {}
    for index in np.ndindex(array.shape):
        a, b, c, row, column = index
        order[index] = grid[3 * b + row, 7 * a + 3 * c + column]
    assert all(code != GAP for code in order.values())
    assert sorted(order, key=lambda index: (order[index], index)) == list(np.ndindex(array.shape))


def test_only_zero_is_white() -> None:
    grid = CellGrid.of(np.array([0.0, -0.0, 5e-324, -5e-324, 1e-300, 1.0]), 80, 80).grid
    assert grid.tolist() == [[ZERO, ZERO, ZERO + 1, ZERO - 1, ZERO + 1, 200]]
    assert CellGrid.of(np.array([1e308, -1e-300, 0.0]), 80, 80).grid.tolist() == [[200, ZERO - 1, ZERO]]  # underflows
    assert PALETTE[ZERO].tolist() == [247, 247, 247]
    assert len({tuple(colour) for colour in PALETTE[: FIRST_MARK + len(MARKS)].tolist()}) == FIRST_MARK + len(MARKS)


def test_what_no_colour_shows_is_marked_and_counted() -> None:
    array = RNG.choice([-1.0, 1.0], (10, 20))
    array[0, :5] = [np.nan, np.inf, -np.inf, 10.0, -10.0]
    cells = CellGrid.of(array, 80, 80)
    assert cells.grid[0, :5].tolist() == [FIRST_MARK + i for i in range(5)]
    assert [(mark.what, count) for mark, count in cells.marks] == [
        ("NaN", 1),
        ("inf", 1),
        ("-inf", 1),
        ("above the colours", 1),
        ("below the colours", 1),
    ]
    assert cells.limit == pytest.approx(3 * np.sqrt((195 - 2 + 2 + 200) / 197), rel=1e-2)
    assert "× 1 NaN, + 1 inf, - 1 -inf, ● 1 above the colours, ● 1 below the colours" in Picture(array).to_html()


def test_of_a_large_tensor_every_kth_element_is_shown_and_that_is_said() -> None:
    array = np.zeros((1000, 999))
    array[13 * 2, 9 * 3] = 1.0
    cells = CellGrid.of(array, 120, 80)
    assert cells.steps == (13, 9)
    assert np.argwhere(cells.grid != ZERO).tolist() == [[2, 3]]
    assert "shown: [::13, ::9], every k-th element" in Picture(array).to_html()
    assert "shown" not in Picture(array[:80, :120]).to_html()


def test_the_numbers_are_of_all_elements_even_of_those_not_shown() -> None:
    array = np.zeros((1000, 999))
    array[1, 1] = np.nan
    array[2, 2] = -3.0
    html = Picture(array).to_html()
    assert "-3 to 0" in html and "999,998 of 999,000 zero, 1 NaN" not in html
    assert "998,998 of 999,000 zero, 1 NaN" in html


@pytest.mark.parametrize(
    "shape", [(5000,), (3, 5000), (70, 60, 50), (9, 9, 9, 9), (3,) * 7, (2,) * 12, (1, 300, 1, 300)]
)
@pytest.mark.parametrize(("columns", "rows"), [(120, 80), (40, 24), (1, 1)])
def test_pictures_fit(shape: tuple[int, ...], columns: int, rows: int) -> None:
    down, across = CellGrid.of(np.ones(shape, np.float32), columns, rows).grid.shape
    assert down <= rows and across <= columns


def test_views_are_shown_as_they_are_and_left_as_they_are() -> None:
    array = RNG.standard_normal((6, 8, 4))
    view = array[::2, ::-1].transpose(2, 0, 1)
    view.setflags(write=False)
    assert np.array_equal(CellGrid.of(view, 80, 80).grid, CellGrid.of(view.copy(), 80, 80).grid)
    assert Picture(view).to_html() == Picture(view.copy()).to_html()
    everywhere = np.broadcast_to(np.float32(2), (3, 4))
    assert (CellGrid.of(everywhere, 80, 80).grid == 200).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.bool_, np.float16, np.uint8])
def test_every_dtype_has_a_picture(dtype: Any) -> None:
    array = np.array([[0, 1], [1, 0]]).astype(dtype)
    assert CellGrid.of(array, 80, 80).grid.tolist() == [[100, 200], [200, 100]]


# ------------------------------------------------------------------ images


def image_of(html: str) -> tuple[int, int, Any]:
    """Width, height and codes of the image in a page."""
    data = b64decode(html.split("base64,")[1].split('"')[0])
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    place, chunks = 8, {}
    while place < len(data):
        length, kind = struct.unpack(">I4s", data[place : place + 8])
        body = data[place + 8 : place + 8 + length]
        assert struct.unpack(">I", data[place + 8 + length : place + 12 + length])[0] == zlib.crc32(kind + body)
        chunks[kind], place = body, place + 12 + length
    width, height, *rest = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert rest == [8, 3, 0, 0, 0] and chunks[b"PLTE"] == PALETTE.tobytes()
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, width + 1)
    assert (lines[:, 0] == 2).all()
    return width, height, np.cumsum(lines[:, 1:], axis=0, dtype=np.uint8)


def test_an_image_has_a_square_for_every_cell() -> None:
    array = np.linspace(-1, 1, 77).reshape(7, 11)
    width, height, pixels = image_of(Picture(array).to_html())
    assert (width, height) == (11 * 16, 7 * 16)
    assert np.array_equal(pixels[8::16, 8::16], CellGrid.of(array, 120, 80).grid)


def test_marks_are_drawn_where_there_is_room() -> None:
    array = np.array([[np.nan, 1.0, 1.0], [np.inf, -np.inf, 1.0], [1.0, 1.0, 1.0]])
    _, _, pixels = image_of(Picture(array).to_html())
    inks = {mark: int((pixels == FIRST_MARK + len(MARKS) + i).sum()) for i, mark in enumerate(("NaN", "inf", "-inf"))}
    assert all(20 < count < 200 for count in inks.values()), inks
    assert inks["inf"] > inks["-inf"]


def test_other_programs_read_the_image() -> None:
    pillow = pytest.importorskip("PIL.Image", reason="pillow is not installed")
    from io import BytesIO

    codes = np.arange(200, dtype=np.uint8).reshape(10, 20)
    with pillow.open(BytesIO(png(codes))) as read:
        assert np.array_equal(np.asarray(read.convert("RGB")), PALETTE[codes])


@pytest.mark.parametrize("shape", [(1000, 1000), (64, 64, 3, 3), (10_000,), (3, 1), (1, 1000), (2, 3, 40, 50)])
def test_a_page_is_small_closed_and_without_scripts(shape: tuple[int, ...]) -> None:
    array = RNG.standard_normal(shape)
    array.ravel()[:: max(array.size // 100, 1)] = np.nan
    html = Picture(array).to_html("<x>")
    assert len(html) < 60_000
    assert "&lt;x&gt;" in html and "<x>" not in html and "<script" not in html
    assert html.count("<div") == html.count("</div>") and html.count("<img") == html.count(" />") == 1


# ------------------------------------------------------------------ terminals


def test_without_colours_letters_tell_signs_sizes_and_marks() -> None:
    array = np.array([[0.0, 0.125, 0.625, 1.0], [-0.125, -0.625, -1.0, np.nan]])
    assert rendered(Picture(array), 80).splitlines() == [
        "(2, 4) float64: -1 to 1, mean 0; 1 of 8 zero, 1 NaN",
        "··░░▓▓██",
        "--==≡≡NN",
        "-~=≡ to -1, · 0, ░▒▓█ to 1, N 1 NaN",
    ]


@pytest.mark.parametrize("shape", [(1000, 1000), (64, 64, 3, 3), (10_000,), (2, 3, 40, 50), (3, 3)])
@pytest.mark.parametrize("colours", ["truecolor", None])
def test_a_terminal_of_80_columns_is_enough(shape: tuple[int, ...], colours: Any) -> None:
    console = Console(width=80, color_system=colours, force_terminal=colours is not None)
    with console.capture() as capture:
        console.print(Picture(np.ones(shape)))
    text = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in capture.get().splitlines()]
    assert max(map(len, text)) <= 80 and len(text) < 30


def test_with_colours_a_character_has_two_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    console = Console(width=40, color_system="truecolor", force_terminal=True)
    with console.capture() as capture:
        console.print(Picture(np.repeat([[1.0], [0.0], [-1.0]], 40, axis=1)))
    first, second, *_ = (line for line in capture.get().splitlines() if "▀" in line)
    red, white, blue = ("{};{};{}".format(*PALETTE[code].tolist()) for code in (200, 100, 0))
    assert first == f"\x1b[38;2;{red};48;2;{white}m{'▀' * 40}\x1b[0m"
    assert second == f"\x1b[38;2;{blue}m{'▀' * 40}\x1b[0m"


# ------------------------------------------------------------------ in a notebook


def test_vars_values_and_gradients_have_pictures() -> None:
    tape: Tape[Any] = Tape()
    x = tape.leaf(np.linspace(-1, 1, 6).reshape(2, 3), name="x")
    grads: Any = tape.backward_dense((x * x).sum())
    for html in (x._repr_html_(), x.value._repr_html_(), grads["x"]._repr_html_()):
        assert "data:image/png;base64," in html
    assert "(2, 3) float64: -2 to 2" in grads["x"]._repr_html_()
    assert x.sum().value._repr_html_().count("<img") == 0

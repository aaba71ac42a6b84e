"""Functions as libraries: the bits of the captured call, weights in two places, loops, chains, names, errors."""

import json
import platform
import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dgrr.runtime.library.export as export
from dgrr.runtime import LibraryError, capture_function, export_library
from dgrr.tape import DomainError, nn, ops

from .native import Array, Loaded, host


def loaded(function: Any, *arrays: Array, path: Path, **options: Any) -> tuple[Loaded, Any]:
    """A function as a library of this machine, and as captured."""
    captured = capture_function(function, *arrays)
    return Loaded(export_library(captured, path, target=host(), name="made", **options)[host()]), captured


@pytest.fixture
def x() -> Array:
    return np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)


@pytest.mark.long
def test_views_several_results_and_inputs_that_are_results(tmp_path: Path, x: Array) -> None:
    def function(x: Any, more: Any) -> Any:
        return {"sum": x + more["y"], "turned": ops.swapaxes(x, 0, 1), "same": x, "size": abs(x)}

    library, captured = loaded(function, x, {"y": x[0]}, path=tmp_path)
    assert [a["name"] for a in library.facts["inputs"]] == ["in0", "in1_y"]
    assert [a["name"] for a in library.facts["outputs"]] == ["out_sum", "out_turned", "out_same", "out_size"]
    found = library(-x, x[1])
    expected = captured(-x, {"y": x[1]})
    assert [a.tobytes() for a in found] == [np.ascontiguousarray(a).tobytes() for a in expected.values()]


@pytest.mark.long
def test_weights_are_constants_or_a_state_that_the_caller_fills(tmp_path: Path, x: Array) -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU())
    params, others = model.init(seed=0), model.init(seed=1)
    fixed, captured = loaded(lambda x: model(params, x), x, path=tmp_path)
    assert fixed.facts["state"] == 0
    assert fixed(x)[0].tobytes() == captured(x).tobytes()
    library, _ = loaded(lambda x: model(params, x), x, path=tmp_path / "state", weights="state")
    assert set(library.held()) == set(params)
    assert library(x)[0].tobytes() == captured(x).tobytes()
    for name, array in library.held().items():
        array[...] = others[name]
    assert library(x)[0].tobytes() == capture_function(model, others, x)(others, x).tobytes()


@pytest.mark.long
def test_convolutions_norms_and_pools_predict_the_same(tmp_path: Path) -> None:
    """What the network of the digits is made of, with statistics that are not those of the start."""
    model = nn.Sequential(
        nn.Conv(1, 3, (3, 3), padding=1, bias=False),
        nn.BatchNorm(3),
        nn.ReLU(),
        nn.MaxPool((2, 2)),
        nn.Flatten(),
        nn.Dropout(0.5),
        nn.Linear(27, 4),
    )
    rng = np.random.default_rng(2)
    state = {name: rng.uniform(0.5, 2, a.shape).astype(a.dtype) for name, a in model.init_state().items()}
    params, images = model.init(seed=0) | state, rng.standard_normal((2, 1, 6, 6)).astype(np.float32)
    library, captured = loaded(lambda x: model(params, x), images, path=tmp_path)
    assert library(images)[0].tobytes() == captured(images).tobytes()
    assert library(-images)[0].tobytes() == captured(-images).tobytes()


def test_chains_and_loops(tmp_path: Path) -> None:
    """Elementwise kernels over several blocks, a loop with a loop in it, one that goes backwards, one of products."""
    x = np.random.default_rng(1).standard_normal((5, 1001)).astype(np.float32)

    def inner(carry: Any, row: Any) -> Any:
        return carry * 0.5 + row, carry

    def function(x: Any) -> Any:
        def outer(carry: Any, row: Any) -> Any:
            last, every = ops.scan(inner, carry, ops.reshape(row[:4], (4, 1)))
            return last, ops.sum(every) + row

        last, every = ops.scan(outer, np.zeros(1, np.float32), x, reverse=True)
        rows = ops.tanh(ops.reshape(x[:, :36], (5, 9, 4)))
        state, _ = ops.scan(lambda h, row: (ops.tanh(row + h @ x[:4, :4]), None), rows[0], rows)
        return last, every, state, (x * 0.5 + 1) * x - abs(x)

    library, captured = loaded(function, x, path=tmp_path)
    for scale in (1, 1e-38, 1e30):
        given = x * np.float32(scale)
        assert [a.tobytes() for a in library(given)] == [a.tobytes() for a in captured(given)]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the library is one for x86")
@pytest.mark.long
def test_rows_of_float64_are_summed_in_sixteen_lanes_where_registers_are_few(tmp_path: Path) -> None:
    x = np.random.default_rng(2).standard_normal((3, 45))
    captured = capture_function(lambda x: ops.sum(x, axis=1), x)
    library = Loaded(export_library(captured, tmp_path, target="x86-64", name="made")["x86-64"])
    assert library(x)[0].tobytes() == captured(x).tobytes()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the library is one for x86")
@pytest.mark.long
def test_lanes_that_are_left_over_touch_no_byte_beside_them(tmp_path: Path) -> None:
    x, room = np.linspace(-1, 1, 21, dtype=np.float32), np.full(32, 7, np.float32)
    captured = capture_function(ops.relu, x)
    library = Loaded(export_library(captured, tmp_path, target="x86-64", name="made")["x86-64"])
    assert library.call([x], [room[:21]]) == 0
    assert room[:21].tobytes() == captured(x).tobytes()
    assert (room[21:] == 7).all()


@pytest.mark.long
def test_what_fails_in_a_loop_says_its_place(tmp_path: Path) -> None:
    table, places = np.arange(6, dtype=np.float32), np.zeros((3, 2), np.int64)

    def function(table: Any, places: Any) -> Any:
        return ops.scan(lambda carry, at: (carry + ops.sum(ops.take(table, at, 0)), carry), table[0], places)

    library, captured = loaded(function, table, places, path=tmp_path)
    places[:] = [[5, -6], [2, 0], [1, 1]]
    assert [a.tobytes() for a in library(table, places)] == [a.tobytes() for a in captured(table, places)]
    places[1, 1] = 6
    code = library.call([table, places], [np.empty(1, np.float32), np.empty(3, np.float32)])
    assert "expected" in library.message(code)
    assert library.position == 1


@pytest.mark.long
def test_equal_programs_give_equal_files(tmp_path: Path, x: Array, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second from texts that another process has translated anew, of a program that is recorded anew."""
    files = list[dict[str, bytes]]()
    for name in ("first", "second"):
        if name == "second":
            monkeypatch.setenv("DGRR_CACHE_DIR", str(tmp_path / "kernels"))
        captured = capture_function(lambda x: x * 3 + 1, x)
        library = export_library(captured, tmp_path / name, target="wasm32", name="made")["wasm32"]
        files.append({p.name: p.read_bytes() for p in library.object.parent.iterdir()})
    assert {p.partition(".")[2] for p in files[0]} == {"o", "h", "json", "wasm", "mjs", "d.mts"}
    assert files[0] == files[1]


def test_files_say_what_a_program_must_know(tmp_path: Path, x: Array) -> None:
    captured = capture_function(lambda x: ops.relu(x), x)
    library = export_library(captured, tmp_path, target="armv7", name="made")["armv7"]
    assert library.object == tmp_path / "armv7" / "made.o"
    facts = json.loads((tmp_path / "armv7" / "made.json").read_text())
    assert facts == library.facts
    header = library.header.read_text()
    assert "int made_run(const float *in0 /* [3][4] */, float *out /* [3][4] */, void *arena, size_t bytes);" in header
    assert f"#define MADE_ARENA {facts['arena']} " in header
    assert f'#define MADE_DIGEST "{facts["digest"]}"' in header
    (tmp_path / "use.c").write_text('#include "armv7/made.h"\nint main(void) { return MADE_ABI; }\n')
    for compiler in (["gcc", "-std=c99", "-pedantic"], ["g++", "-x", "c++"]):
        subprocess.run([*compiler, "-Wall", "-Werror", "-fsyntax-only", "use.c"], cwd=tmp_path, check=True)


def test_what_cannot_be_exported(tmp_path: Path, x: Array, monkeypatch: pytest.MonkeyPatch) -> None:
    captured = capture_function(lambda x: ops.relu(x), x)
    for options, text in (
        ({"weights": "file"}, "argument 'weights': expected 'const' or 'state', got 'file'"),
        ({}, "argument 'name': expected letters, digits and _, as a name in C has them, got '<lambda>'"),
        ({"name": "made", "target": "m68k"}, "argument 'target': expected one of x86-64-v4, "),
    ):
        with pytest.raises(DomainError, match=re.escape(text)):
            export_library(captured, tmp_path, **options)  # type: ignore[arg-type]
    with pytest.raises(DomainError, match="argument 'captured': expected a function that was captured for some arrays"):
        export_library(capture_function(lambda x: x), tmp_path, name="made")
    monkeypatch.setattr(export, "WORKER", "dgrr.no_such_module")
    with pytest.raises(LibraryError, match="made for wasm32: the process that makes it ended: see its message"):
        export_library(captured, tmp_path, name="made", target="wasm32")
    monkeypatch.setattr(export, "answers", lambda *given: [(None, "RefusedCodeError: calls fmaf: %x = call")])
    with pytest.raises(
        LibraryError, match="made for wasm32: expected code that it can run, got RefusedCodeError: calls"
    ):
        export_library(captured, tmp_path, name="made", target="wasm32")


def halved(x: Any) -> Any:
    """Halved as often as its sum allows, which may be never."""
    return ops.while_loop(lambda y: y.sum() > 1, lambda y: y * 0.5, x)


@pytest.mark.parametrize("target", [host(), "x86-64"])
def test_calls_that_depend_on_values(target: str, tmp_path: Path, x: Array) -> None:
    """A choice, a loop, one within the other, and both within a scan: whichever way they go."""

    def function(x: Any) -> Any:
        def turn(carry: Any, row: Any) -> Any:
            carry = ops.cond(row.sum() > 0, lambda c, r: ops.tanh(c + r), lambda c, r: halved(c - r), carry, row)
            return carry, halved(carry)

        chosen = ops.cond(x.sum() > 0, halved, ops.tanh, x)
        return {"chosen": chosen, "halved": halved(x), "scanned": ops.scan(turn, x[0], x)[1]}

    captured = capture_function(function, x)
    library = Loaded(export_library(captured, tmp_path, target=target, name="made")[target])
    ways = [abs(x), -abs(x), abs(x) * 100, x, np.zeros_like(x), np.full_like(x, 1 / 12)]
    for given in ways:
        found = [a.tobytes() for a in library(given)]
        assert found == [np.ascontiguousarray(a).tobytes() for a in captured(given).values()]


def test_what_is_wrong_on_one_side_is_told(tmp_path: Path, x: Array) -> None:
    def function(x: Any, labels: Any) -> Any:
        return ops.cond(x.sum() > 0, ops.cross_entropy, lambda x, labels: x.sum(), x, labels)

    library, captured = loaded(function, x, np.array([0, 2, 1]), path=tmp_path)
    wrong = np.array([0, 7, 1])
    assert library(-abs(x), wrong)[0].tobytes() == np.asarray(captured(-abs(x), wrong)).tobytes()
    code = library.call([abs(x), wrong], [np.empty(1, np.float32)])
    assert "argument 'labels': expected a class from 0 to 3" in library.message(code)
    assert library.position == 1

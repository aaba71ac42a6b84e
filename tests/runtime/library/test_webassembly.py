"""Libraries of WebAssembly: modules that ask for nothing, what loads them, and the probe of relaxed SIMD."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import Library, export_library
from dgrr.tape.numerics.library.wasm import UnlinkedError, module_of, number, signed

from ...node import relaxed_simd
from .conftest import batches, step

PROGRAM = Path(__file__).with_name("loaded.mjs")
OBJECT = b"\0asm\1\0\0\0"

node = pytest.mark.skipif(shutil.which("node") is None, reason="needs node (Debian: apt-get install nodejs)")


@pytest.fixture(scope="module")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Library]:
    """The step by both targets."""
    return export_library(step(), tmp_path_factory.mktemp("wasm"), target=("wasm32", "wasm32-relaxed"), name="net")


def trained(libraries: dict[str, Library], engine: str) -> Any:
    """What a program finds that trains by the libraries, in an engine that is as it is, or pretends."""
    folder = libraries["wasm32"].object.parents[1]
    given = json.dumps([[x.ravel().tolist(), labels.tolist()] for x, labels in batches()])
    command = ["node", *relaxed_simd(), str(PROGRAM), str(folder), engine]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@node
@pytest.mark.parametrize("engine", ["as it is", "rounds twice", "knows no relaxed SIMD"])
def test_an_engine_trains_to_the_bits_of_the_captured_step(libraries: dict[str, Library], engine: str) -> None:
    own = step()
    losses = [np.asarray(own(batch)).tobytes().hex() for batch in batches()]
    found = trained(libraries, engine)
    assert found["losses"] == losses
    assert found["again"] == losses[0]
    arrays = {**own.params, **own.state, **own.model_state}
    assert found["state"] == {name: array.tobytes().hex() for name, array in arrays.items()}
    assert not (found["relaxed"] and engine != "as it is")


@node
def test_what_is_wrong_is_said_in_words(libraries: dict[str, Library]) -> None:
    found = trained(libraries, "knows no relaxed SIMD")
    name, text, code, position = found["label"]
    assert (name, position) == ("LibraryError", "5")
    assert text == "cross_entropy: argument 'labels': expected a class from 0 to 2, got another at position 5"
    assert libraries["wasm32"].facts["codes"][code - 1].startswith("cross_entropy: argument 'labels'")
    wanted = "net: input 'in0': expected a Float32Array of 42 elements, got Float64Array of 42"
    assert found["dtype"] == ["TypeError", wanted, None, None]
    assert found["missing"][1] == "net: input 'in1': expected a BigInt64Array of 7 elements, got undefined"


def test_types_name_every_array(libraries: dict[str, Library]) -> None:
    library = libraries["wasm32"]
    text = library.object.with_suffix(".d.mts").read_text()
    for line in (
        "inputs: Inputs): Outputs;",
        '  "in1": BigInt64Array; // [7]',
        '  "loss": Float32Array; // []',
        '  readonly "0.weight": Float32Array; // [5, 6]',
    ):
        assert line in text
    assert text.count('  readonly "') == len(library.facts["held"])


def imports(*names: str) -> bytes:
    """A section that imports functions."""
    entries = b"".join(b"\3env" + bytes([len(name)]) + name.encode() + b"\0\0" for name in names)
    body = number(len(names)) + entries
    return b"\2" + number(len(body)) + body


def test_an_object_that_is_no_module_is_refused() -> None:
    with pytest.raises(
        UnlinkedError, match="asks for __linear_memory and __stack_pointer, got one that asks for sinf$"
    ):
        module_of(OBJECT + imports("sinf"), [])
    segments = b"\2\0\x41\0\x0b\4data\0\x41\2\x0b\0"
    with pytest.raises(UnlinkedError, match="^expected segments of data one behind the other$"):
        module_of(OBJECT + b"\x0b" + number(len(segments)) + segments, [])


@pytest.mark.parametrize("value", [0, 63, 64, -64, -65, 127, 128, 1 << 20, -(1 << 31)])
def test_signed_numbers(value: int) -> None:
    data = signed(value)
    total = sum((byte & 0x7F) << (7 * i) for i, byte in enumerate(data))
    assert total - ((1 << (7 * len(data))) if data[-1] & 0x40 else 0) == value

"""Writes a page that trains the network of `dgrr demo` in a browser, with the bits of training here.

``python docs/examples/browser/build.py -o FOLDER`` writes one file, ``index.html``, which opens from the disk and asks
the network for nothing.
"""

import argparse
import json
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from gzip import compress
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

from dgrr.runtime import Adam, Dataset, capture, capture_function, data, export_library
from dgrr.trace.cli.demo import MODEL, STATE_DIGEST, loss_fn

HERE = Path(__file__).parent
BATCH, EPOCHS, SEED, RATE = 64, 20, 0, 1e-3
TARGETS = ("wasm32", "wasm32-relaxed")


def order(n: int) -> "np.ndarray[tuple[int, ...], np.dtype[np.uint16]]":
    """The numbers of the samples as training meets them, epoch after epoch."""
    batches = Dataset(np.arange(n)).batches(BATCH, seed=SEED)
    return np.concatenate([rows for k in range(EPOCHS) for (rows,) in batches.epoch(k)]).astype(np.uint16)


def libraries(folder: Path) -> Iterator[tuple[str, bytes]]:
    """The files of a step for whole batches, of one for the rest of an epoch, and of the network alone.

    Their states begin with zeros, which take no room: the page fills them.
    """
    train, test = data.digits()
    images, labels = train.arrays
    empty = {name: np.zeros_like(array) for name, array in MODEL.init(SEED).items()}
    rest = len(train) % BATCH
    made = {
        "step": capture(loss_fn, empty, Adam(lr=RATE), (images[:BATCH], labels[:BATCH])),
        "rest": capture(loss_fn, empty, Adam(lr=RATE), (images[:rest], labels[:rest])),
        "predict": capture_function(lambda x: MODEL(empty, x), test.arrays[0]),
    }
    for name, captured in made.items():
        for target, library in export_library(captured, folder, target=TARGETS, name=name, weights="state").items():
            assert library.module is not None
            yield f"{target}/{name}.wasm", library.module.read_bytes()
        yield f"{name}.mjs", library.module.with_suffix(".mjs").read_bytes()


def arrays() -> Iterator[tuple[str, bytes]]:
    """The digits, in sixteenths, the order in which they come, and the weights at the start."""
    for name, part in zip(("train", "test"), data.digits(), strict=True):
        images, labels = part.arrays
        yield f"{name}/images", (images * 16).astype(np.uint8).tobytes()
        yield f"{name}/labels", labels.astype(np.uint8).tobytes()
    yield "order", order(len(data.digits()[0])).tobytes()
    yield "weights", b"".join(array.tobytes() for array in MODEL.init(SEED).values())


def packed(contents: Iterable[tuple[str, bytes]]) -> str:
    """What the page unpacks, by name."""
    return json.dumps({name: b64encode(compress(content, mtime=0)).decode() for name, content in contents})


def filled(name: str, marks: Mapping[str, str]) -> str:
    """The frame of this folder's pages around the content of one, with what the marks stand for."""
    text = (HERE / "frame.html").read_text()
    own = {"BODY": (HERE / name).read_text().strip(), "STYLE": (HERE / "page.css").read_text()}
    for mark, content in {**own, **marks}.items():
        text = text.replace(f"[[{mark}]]", content)
    return text


def scripts(*names: str) -> str:
    """Scripts of this folder, one behind the other."""
    return "\n".join((HERE / name).read_text() for name in names)


def page(folder: Path) -> str:
    """The text of the page."""
    step = capture(loss_fn, MODEL.init(SEED), Adam(lr=RATE), (np.zeros((1, 64), np.float32), np.zeros(1, np.int64)))
    told = {"batch": BATCH, "epochs": EPOCHS, "digest": STATE_DIGEST, "parts": [list(step.params), list(step.state)]}
    marks = {
        "TITLE": "dgrr: training in a page",
        "TOLD": json.dumps(told),
        "PACKED": packed((*libraries(folder), *arrays())),
        "SCRIPT": scripts("unpacking.js", "digest.js", "drawing.js", "training.js"),
    }
    return filled("page.html", marks)


def write(folder: Path, text: str) -> None:
    """Write a page, and say how long it is."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "index.html"
    path.write_text(text)
    print(f"{path}: {path.stat().st_size:,} bytes")


def main() -> None:
    """Write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="FOLDER", help="where index.html goes")
    args = parser.parse_args()
    write(args.out, page(Path(mkdtemp())))


if __name__ == "__main__":
    main()

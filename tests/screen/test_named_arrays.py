"""Dicts of arrays in a notebook: a row for each, and no more than can be read."""

import copy
import pickle
import re
from pathlib import Path

import numpy as np

from dgrr.runtime import Adam, Trainer
from dgrr.screen.named_arrays import NamedArrays
from dgrr.tape import nn
from dgrr.trace import open_trace


def cells(html: str) -> list[list[str]]:
    rows = re.findall(r"<tr>(.*?)</tr>", html)
    return [re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row) for row in rows]


def test_a_row_for_each_array() -> None:
    arrays = NamedArrays({"<w>": np.array([[1.0, -2.0], [0.0, np.nan]]), "n": np.array(3)})
    html = arrays._repr_html_()
    assert "<strong>2 arrays, 5 elements</strong>" in html
    assert cells(html) == [
        ["name", "shape", "dtype", "least", "greatest", "mean", "zeros", "NaN", "infinite"],
        ["&lt;w&gt;", "(2, 2)", "float64", "-2", "1", "-0.3333", "1", "1", "0"],
        ["n", "()", "int64", "3", "3", "3", "0", "0", "0"],
    ]


def test_of_many_the_first_and_the_last() -> None:
    html = NamedArrays({str(i): np.zeros(1) for i in range(100)})._repr_html_()
    assert [row[0] for row in cells(html)][1:] == [*map(str, range(30)), "… 60 more", *map(str, range(90, 100))]
    assert cells(NamedArrays()._repr_html_())[1:] == []


def test_it_is_a_dict_as_any_other() -> None:
    arrays = NamedArrays({"w": np.ones(2)})
    assert repr(arrays) == "{'w': array([1., 1.])}" and isinstance(arrays, dict)
    for other in (copy.copy(arrays), copy.deepcopy(arrays), pickle.loads(pickle.dumps(arrays))):
        assert list(other) == ["w"] and other["w"].tolist() == [1.0, 1.0]


def test_what_people_look_at_is_such_a_dict(tmp_path: Path) -> None:
    layer = nn.Linear(2, 1)
    trainer = Trainer(lambda p, x: layer(p, x).sum(), layer.init(0), Adam(0.1), trace=tmp_path / "run.dgrr", ema=0.9)
    trainer.fit([np.ones((3, 2), np.float32)], steps=2)
    with open_trace(tmp_path / "run.dgrr") as trace:
        found = [layer.init(0), trainer.params, trainer.state, trace.gradients(1), trace.keyframe(0), trace.buffers(0)]
    assert [type(each) for each in found] == [NamedArrays] * len(found)
    assert trainer.params is trainer.params

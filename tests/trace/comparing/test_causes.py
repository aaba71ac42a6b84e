"""Why two runs part: every cause, and the step, the tensor and the keys that are named with it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dgrr.trace import Cause, Comparison, OpDigests, TapeNode, Verdict, compare
from dgrr.trace.v2.write import open_recorder as recording

Told = dict[str, Any]
Write = Callable[..., Path]
GiveOps = Callable[[dict[Path, dict[int, OpDigests]]], None]


def at(step: int, change: Callable[[Told], object]) -> Callable[[int, Told], None]:
    """A mutation of one step."""

    def mutate(k: int, told: Told) -> None:
        if k == step:
            change(told)

    return mutate


def off(name: str, part: str = "grads") -> Callable[[Told], None]:
    """One element of a tensor moved by one ULP."""

    def change(told: Told) -> None:
        array = told[part][name] = told[part][name].copy()
        array.flat[0] = np.nextafter(array.flat[0], np.float32(9))

    return change


def kept(told: Told) -> None:
    """A param without a gradient, as if it were frozen."""
    del told["grads"]["b"]


CAUSES: dict[str, tuple[Callable[[Told], object], Cause, list[str], dict[str, tuple[Any, Any]]]] = {
    "another batch": (lambda t: t.update(batch=t["batch"] + 1), Cause.DATA, [], {}),
    "other parts": (
        lambda t: t.update(batch=t["batch"] + 1, micro_batches=2),
        Cause.DATA,
        [],
        {"micro_batches": (1, 2)},
    ),
    "parts and loss of the same data": (
        lambda t: t.update(micro_batches=2, loss=t["loss"] + 1),
        Cause.RULE,
        ["loss"],
        {"micro_batches": (1, 2)},
    ),
    "parts of the same data": (lambda t: t.update(micro_batches=2), Cause.RULE, [], {"micro_batches": (1, 2)}),
    "loss": (lambda t: t.update(loss=np.nextafter(t["loss"], np.float32(9))), Cause.GRADIENT, ["loss"], {}),
    "gradient": (off("w"), Cause.GRADIENT, ["gradient of 'w'"], {}),
    "buffer": (off("mean", "model_state"), Cause.GRADIENT, ["'mean' after the step"], {}),
    "frozen": (kept, Cause.GRADIENT, ["gradient of 'b'"], {}),
    "lr": (lambda t: t["hyper"].update(lr=0.25), Cause.RULE, [], {"lr": (0.125, 0.25)}),
    "clip_norm": (
        lambda t: [t.update(clip=(1.0, 0.5)), off("w")(t)],
        Cause.RULE,
        ["gradient of 'w'"],
        {"clip_norm": (None, 1.0)},
    ),
    "param": (off("b", "params"), Cause.UPDATE, ["'b' after the step"], {}),
    "state": (lambda t: t["state"].update(step=np.array(99)), Cause.UPDATE, ["'step' after the step"], {}),
}


@pytest.mark.parametrize("name", CAUSES)
@pytest.mark.parametrize("record", ["digest", "full"])
def test_every_cause_of_a_step(write: Write, name: str, record: str) -> None:
    change, cause, titles, settings = CAUSES[name]
    found = compare(write("a", record=record), write("b", at(5, change), record=record))
    assert (found.verdict, found.cause, found.step) == (Verdict.DIVERGED, cause, 5)
    found_titles = [t.title for t in found.tensors]
    assert found_titles[: len(titles)] == titles
    assert len(set(found_titles)) == len(found_titles)
    assert found.settings == settings
    assert found.sentence.startswith("step 5 is the first that differs: ")
    checked(found)


def checked(found: Comparison) -> None:
    """A comparison as text fits a screen, and as a dict goes through JSON."""
    lines = str(found).splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 100 or found.a in max(lines, key=len) or found.b in max(lines, key=len)
    again = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert again["same"] is found.same
    assert again["cause"] == (found.cause and found.cause.value)


def test_sentences(write: Write) -> None:
    a = write("a")
    expected = {
        "another batch": "it was given another batch",
        "other parts": "it was given another batch, of 2 parts, not 1",
        "loss": "from equal data and the equal state of step 4 it computes another loss",
        "lr": "it has another lr: 0.125 -> 0.25",
        "clip_norm": "it has another clip_norm: none -> 1.0",
        "param": "from equal gradients the rule makes another 'b' after the step",
    }
    for name, text in expected.items():
        found = compare(a, write(name.replace(" ", ""), at(5, CAUSES[name][0])))
        assert found.sentence == f"step 5 is the first that differs: {text}"


def test_the_first_thing_in_a_step_is_the_cause(write: Write) -> None:
    def everything(told: Told) -> None:
        off("w", "params")(told)
        told["hyper"]["lr"] = 0.25

    a = write("a")
    assert compare(a, write("b", at(2, everything))).cause is Cause.RULE
    found = compare(a, write("c", at(2, lambda t: [everything(t), off("w")(t)])))
    assert (found.cause, [t.title for t in found.tensors]) == (
        Cause.GRADIENT,
        ["gradient of 'w'", "'w' after the step"],
    )
    assert found.settings == {"lr": (0.125, 0.25)}
    assert compare(a, write("d", at(2, lambda t: [everything(t), off("w")(t), t.update(batch=[])]))).cause is Cause.DATA


def test_gradients_come_in_the_order_of_the_way_back(write: Write) -> None:
    found = compare(write("a"), write("b", at(1, lambda t: [off("w")(t), off("b")(t)])))
    assert [t.title for t in found.tensors] == ["gradient of 'b'", "gradient of 'w'"]


def test_swapped_batches_are_recognised(write: Write) -> None:
    batches = {k: np.full((4, 3), float(k)) for k in range(8)}

    def run(name: str, order: list[int]) -> Path:
        return write(name, lambda k, told: told.update(batch=batches[order[k]]))

    found = compare(run("a", [0, 1, 2, 3, 4, 5, 6, 7]), run("b", [0, 1, 5, 3, 4, 2, 6, 7]))
    assert (found.cause, found.step) == (Cause.DATA, 2)
    assert "the batch that a was given at step 5" in found.notes
    found = compare(run("e", [0, 1, 2, 3, 4, 5, 6, 7]), run("f", [0, 1, 2, 3, 4, 5, 1, 7]))
    assert found.notes == ["the batch that a was given at step 1"]
    found = compare(run("c", [0, 1, 2, 3, 4, 5, 6, 6]), run("d", [0, 1, 7, 3, 4, 5, 6, 6]))
    assert not any(note.startswith("the batch that a was given") for note in found.notes)


def test_another_scale_of_clipping(write: Write) -> None:
    a, b = (write(name, at(5, lambda t, s=scale: t.update(clip=(1.0, s)))) for name, scale in (("a", 0.5), ("b", 0.25)))
    found = compare(a, b)
    assert (found.cause, found.step, found.tensors) == (Cause.UPDATE, 5, [])
    assert found.sentence.endswith(
        "from equal gradients the rule makes other bias corrections, or clipping another scale"
    )


# ------------------------------------------------------------------ before step 0


def test_another_start(write: Write) -> None:
    found = compare(write("a"), write("b", begin=lambda p: p.update(b=p["b"] + np.float32(1)), seed=7))
    assert (found.cause, found.step, found.sentence) == (
        Cause.START,
        None,
        "they start from different values: a tensor differs, first 'b' before step 0",
    )
    assert found.settings == {"seed": (0, 7)}
    checked(found)


def test_another_seed_alone_changes_nothing(write: Write) -> None:
    assert compare(write("a"), write("b", seed=7)).same


def test_another_model(write: Write) -> None:
    a = write("a")
    found = compare(a, write("b", dtype=np.float64))
    assert (found.cause, found.step) == (Cause.MODEL, None)
    assert found.sentence == "the models differ: param 'w' f32 (3, 2) became param 'w' f64 (3, 2); 2 more differ"
    checked(found)

    def grown(params: dict[str, Any]) -> None:
        params["extra"] = np.zeros(2, np.float32)

    assert compare(a, write("c", begin=grown)).sentence == "the models differ: param 'extra' f32 (2,) is in b only"
    assert compare(write("d", begin=grown), a).sentence == "the models differ: param 'extra' f32 (2,) is in a only"

    def turned(params: dict[str, Any]) -> None:
        params["w"] = params.pop("w")

    found = compare(a, write("e", begin=turned))
    assert found.sentence == "the models differ: they have the same tensors in a different order"


def test_another_rule(write: Write) -> None:
    found = compare(write("a"), write("b", rule="lion@1"))
    assert (found.cause, found.step, found.sentence) == (Cause.RULE, None, "the rules differ: sgd@1 and lion@1")
    assert found.settings == {"rule": ("sgd@1", "lion@1")}

    def told(step: int, told: Told) -> None:
        told["hyper"] = {"lr": 0.125, "beta": 0.5}

    found = compare(write("c"), write("d", told, hyperparameters=["lr", "beta"]))
    assert found.cause is Cause.RULE
    assert found.settings == {"momentum": (0.5, None), "beta": (None, 0.5)}
    found = compare(write("e"), write("f", clip_value=0.5))
    assert (found.cause, found.settings) == (Cause.RULE, {"clip_value": (None, 0.5)})


# ------------------------------------------------------------------ states between digests


def test_a_state_that_is_not_recorded_may_be_the_cause(write: Write) -> None:
    a, b = (write(name, at(6, change), state_every=4) for name, change in (("a", lambda t: None), ("b", off("w"))))
    found = compare(a, b)
    assert (found.cause, found.step) == (Cause.GRADIENT, 6)
    assert "or an update since step 4: the state before step 6 is not recorded (state_every 4)" in found.notes
    often = write("d", state_every=1)
    assert (
        "or an update since step 4: the state before step 6 is not recorded (state_every 4)" in compare(often, b).notes
    )
    c = write("c", at(4, off("w")), state_every=4)
    assert not any("or an update" in note for note in compare(a, c).notes)


def test_the_final_state_counts(write: Write) -> None:
    found = compare(write("a", state_every=16), write("b", at(7, off("b", "params")), state_every=16))
    assert (found.cause, found.step) == (Cause.UPDATE, 7)
    assert (
        found.sentence == "all 8 steps are equal, but not the final state: a tensor differs, first 'b' after the step"
    )
    assert compare(write("c", state_every=16), write("d", state_every=16)).same


# ------------------------------------------------------------------ with the digests of ops

GRAPH = (
    TapeNode("leaf", "float32", (3, 2), name="w"),
    TapeNode("leaf", "float32", (4, 3)),
    TapeNode("linear", "float32", (4, 2), (1, 0), scope="fc1", place="train.py:7: h = fc1(p, x)"),
    TapeNode("tanh", "float32", (4, 2), (2,)),
    TapeNode("mean", "float32", (), (3,)),
)


def digests(values: str = "abcde", grads: str = "a.cde", nodes: tuple[TapeNode, ...] = GRAPH) -> OpDigests:
    return OpDigests(
        nodes,
        tuple(c.encode() for c in values),
        tuple(None if c == "." else c.encode() for c in grads),
    )


def with_ops(write: Write, give: GiveOps, other: OpDigests | None, *, step: int = 3, **options: Any) -> Comparison:
    """Two runs that part in the loss of a step, with digests of the ops of that step."""
    a = write("a")
    b = write("b", at(step, lambda t: t.update(loss=t["loss"] + 1)), **options)
    give({a: {step: digests()}, b: {} if other is None else {step: other}})
    found = compare(a, b)
    checked(found)
    return found


def test_the_first_op_is_named(write: Write, give_ops: GiveOps) -> None:
    found = with_ops(write, give_ops, digests("abxyz", "ABCDE"))
    assert (found.cause, found.step) == (Cause.GRADIENT, 3)
    assert found.op is not None
    assert (found.op.what, found.op.index, found.op.node.op, found.op.inputs_agree) == ("value", 2, "linear", True)
    text = str(found)
    assert "first op that differs: #2 of 5, linear float32 (4, 2) in layer fc1" in text
    assert "train.py:7: h = fc1(p, x)" in text


def test_ops_that_one_trace_lacks_are_said_to_be_missing(write: Write, give_ops: GiveOps) -> None:
    found = with_ops(write, give_ops, None)
    assert found.op is None
    assert "which op: not recorded in b at step 3 (Keep.ops)" in found.notes


def test_where_all_ops_agree_the_rest_of_the_step_differs(write: Write, give_ops: GiveOps) -> None:
    found = with_ops(write, give_ops, digests())
    assert (found.op, found.cause) == (None, Cause.GRADIENT)
    assert any(note.startswith("every op agrees: what differs is computed from their results") for note in found.notes)


def test_another_graph_is_another_model(write: Write, give_ops: GiveOps) -> None:
    nodes = (*GRAPH[:3], TapeNode("relu", "float32", (4, 2), (2,)), GRAPH[4])
    found = with_ops(write, give_ops, digests("abcxy", nodes=nodes))
    assert (found.cause, found.sentence) == (
        Cause.MODEL,
        "step 3 is the first that differs: it runs other ops; first relu instead of tanh",
    )
    assert found.op is not None
    assert (found.op.what, found.op.node.op, found.op.was) == ("changed", "relu", GRAPH[3])


def test_another_schema_names_its_first_op_too(write: Write, give_ops: GiveOps) -> None:
    a, b = write("a"), write("b", dtype=np.float64)
    nodes = tuple(TapeNode(n.op, "float64", n.shape, n.parents) for n in GRAPH)
    give_ops({a: {0: digests()}, b: {0: digests(nodes=nodes)}})
    found = compare(a, b)
    assert (found.cause, found.op and found.op.what) == (Cause.MODEL, "changed")


def test_a_param_that_differs_is_an_update_before(write: Write, give_ops: GiveOps) -> None:
    found = with_ops(write, give_ops, digests("xbxyz"), state_every=1)
    assert found.cause is Cause.UPDATE


def test_a_draw_by_another_seed_is_another_start(write: Write, give_ops: GiveOps) -> None:
    def drawn(seed: int) -> tuple[TapeNode, ...]:
        return (*GRAPH[:3], TapeNode("dropout", "float32", (4, 2), (2,), f"p=0.5, seed={seed}, ordinal=0"), GRAPH[4])

    a = write("a", seed=1)
    b = write("b", at(3, lambda t: t.update(loss=t["loss"] + 1)), seed=20)
    give_ops({a: {3: digests(nodes=drawn(1))}, b: {3: digests("abcxy", nodes=drawn(20))}})
    found = compare(a, b)
    assert (found.cause, found.settings) == (Cause.START, {"seed": (1, 20)})
    assert found.sentence == "step 3 is the first that differs: it draws with another seed: 1 -> 20"
    give_ops({a: {3: digests(nodes=drawn(1))}, b: {3: digests("abcxy", nodes=drawn(3))}})
    assert compare(a, b).cause is Cause.MODEL  # another seed than that of the run


MACHINE = {"sources": "0123", "cpu": "one", "numpy": "2.1", "python": "3.11"}


@pytest.mark.parametrize(
    ("other", "cause", "environment"),
    [
        ({"cpu": "other"}, Cause.ENVIRONMENT, {"cpu": ("one", "other")}),
        ({"numpy": "2.2"}, Cause.ENVIRONMENT, {"numpy": ("2.1", "2.2")}),
        ({"threads": 8}, Cause.GRADIENT, {"threads": (None, 8)}),
        ({}, Cause.GRADIENT, {}),
        ({"cpu": "other", "sources": "4567"}, Cause.GRADIENT, {"sources": ("0123", "4567"), "cpu": ("one", "other")}),
    ],
)
def test_the_environment(
    write: Write,
    give_ops: GiveOps,
    monkeypatch: pytest.MonkeyPatch,
    other: dict[str, Any],
    cause: Cause,
    environment: dict[str, Any],
) -> None:
    monkeypatch.setattr(recording, "describe_environment", lambda: MACHINE)
    a = write("a")
    monkeypatch.setattr(recording, "describe_environment", lambda: MACHINE | other)
    b = write("b", at(3, lambda t: t.update(loss=t["loss"] + 1)))
    give_ops({a: {3: digests()}, b: {3: digests("abxyz")}})
    found = compare(a, b)
    assert (found.cause, found.environment) == (cause, environment)
    give_ops({a: {3: digests()}, b: {3: digests("aBxyz")}})
    assert compare(a, b).cause is Cause.GRADIENT  # a value that no op made is no matter of the machine
    give_ops({})
    assert compare(a, b).cause is Cause.GRADIENT  # the model may be another: its ops are not known
    c = write("c", at(3, off("b", "params")))
    assert compare(a, c).cause is (cause if cause is Cause.ENVIRONMENT else Cause.UPDATE)


def test_sources_that_are_not_known_prove_nothing(
    write: Write, give_ops: GiveOps, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = []
    for cpu in ("one", "other"):
        monkeypatch.setattr(recording, "describe_environment", lambda cpu=cpu: {"sources": "unknown", "cpu": cpu})
        paths.append(write(cpu, at(3, lambda t: t.update(loss=t["loss"] + len(paths)))))
    give_ops({paths[0]: {3: digests()}, paths[1]: {3: digests("abxyz")}})
    assert compare(*paths).cause is Cause.GRADIENT


def test_the_part_of_a_batch_that_differs(write: Write, give_ops: GiveOps) -> None:
    a, b = write("a"), write("b", at(3, lambda t: t.update(batch=t["batch"] + 1, loss=t["loss"] + 1)))
    give_ops({a: {3: digests()}, b: {3: digests("aBxyz")}})
    found = compare(a, b)
    assert (found.cause, found.sentence) == (
        Cause.DATA,
        "step 3 is the first that differs: it was given another batch; first the float32 (4, 3) that linear takes",
    )


def test_ops_that_agree_show_that_the_state_does(write: Write, give_ops: GiveOps) -> None:
    a, b = (write(name, at(6, change), state_every=4) for name, change in (("a", lambda t: None), ("b", off("w"))))
    give_ops({a: {6: digests()}, b: {6: digests("abcde", "a.Cde")}})
    assert compare(a, b).notes == []
    give_ops({a: {6: digests()}, b: {6: digests("aBcde")}})
    assert compare(a, b).notes == [
        "or an update since step 4: the state before step 6 is not recorded (state_every 4)"  # of a buffer
    ]


def test_a_tolerance_is_said(write: Write) -> None:
    found = compare(write("a"), write("b", at(3, lambda t: t.update(loss=t["loss"] + 1))), policy="ulp=4")
    assert found.sentence == (
        "step 3 is the first that differs: from equal data it computes another loss than ulp=4 allows"
    )

"""What each command answers, on good traces and with wrong steps."""

import math
import os
import struct

import pytest

LR, SEED = 0.01, 42


@pytest.fixture
def five(tmp_path, ref):
    """A folder and file name with spaces, and the records in it."""
    folder = tmp_path / "a folder"
    folder.mkdir()
    path = folder / "five steps.dgrr"
    records = ref.train(5, LR, SEED)
    path.write_bytes(ref.trace_bytes(records, created_at=99))
    return path, records


def squeezed(text):
    return " ".join(text.split())


def three_ways(value):
    return f"{value!r} {value.hex()} {struct.unpack('<Q', struct.pack('<d', value))[0]:016x}"


def test_train_says_what_it_wrote(dgrr, tmp_path, ref):
    out = tmp_path / "t"
    answer = dgrr("train", "--steps", 5, "--out", out, "--created-at", 99)
    records = ref.train(5, LR, SEED)
    assert (answer.code, answer.err) == (0, "")
    assert f"{out}: 5 steps, seed 42, learning rate 0.01" in answer.out
    assert three_ways(records[4].w_after) in squeezed(answer.out)
    assert three_ways(records[4].b_after) in squeezed(answer.out)
    total = math.fsum(record.loss for record in records)
    assert f"total {total!r}, mean {total / 5!r}" in answer.out


def test_two_runs_differ_in_their_creation_time_alone(dgrr, tmp_path):
    for name, time in (("a", 1), ("b", -1)):
        assert dgrr("train", "--steps", 9000, "--out", tmp_path / name, "--created-at", time).code == 0
    a, b = (tmp_path / "a").read_bytes(), (tmp_path / "b").read_bytes()
    assert [i for i in range(len(a)) if a[i] != b[i]] == list(range(40, 48))
    assert dgrr("train", "--steps", 9000, "--out", tmp_path / "a", "--created-at", -1).code == 0
    assert (tmp_path / "a").read_bytes() == b


def test_no_steps_is_a_valid_trace(dgrr, tmp_path):
    out = tmp_path / "t"
    answer = dgrr("train", "--steps", 0, "--out", out)
    assert answer.code == 0
    assert "loss  none" in answer.out
    assert out.stat().st_size == 64
    assert dgrr("validate", out).code == 0
    answer = dgrr("inspect", "--step", 0, "--trace", out)
    assert answer.code == 1
    assert f"argument --step: {out} has no step 0: it has no steps" in answer.err
    assert dgrr("compare", "--a", out, "--b", out).code == 0


@pytest.mark.parametrize(("lr", "steps"), [(1e300, 1), (100.0, None)])
def test_training_stops_before_a_value_that_is_not_finite(dgrr, ref, tmp_path, lr, steps):
    out = tmp_path / "t"
    answer = dgrr("train", "--steps", 10000, "--lr", lr, "--out", out, "--created-at", 0)
    reference = ref.train(1000, lr, SEED)
    finite = [all(map(math.isfinite, record)) for record in reference]
    good = finite.index(False)
    assert steps in (None, good)
    assert answer.code == 4
    assert f"training stopped: step {good} is not finite (" in answer.err
    assert f"{out} holds the steps before it; try a smaller --lr" in answer.err
    assert out.read_bytes() == ref.trace_bytes(reference[:good], lr=lr)
    assert dgrr("validate", out).code == 0


def test_validate(dgrr, five, ref):
    path, records = five
    answer = dgrr("validate", path)
    assert (answer.code, answer.err) == (0, "")
    assert f"{path}: valid, 5 steps, seed 42, learning rate 0.01" in answer.out
    assert f"total {math.fsum(record.loss for record in records)!r}" in answer.out
    assert "all steps follow from seed 42, bit for bit" in answer.out


@pytest.mark.parametrize("command", ["replay", "inspect", "rollback"])
@pytest.mark.parametrize("step", [5, 6, 2**64 - 1])
def test_a_step_beyond_the_end_is_a_usage_error(dgrr, five, command, step):
    path, _ = five
    answer = dgrr(command, "--step", step, "--trace", path)
    assert answer.code == 1
    assert f"argument --step: {path} has no step {step}: it has steps 0 to 4" in answer.err
    assert answer.out == ""


def test_an_invalid_trace_answers_before_a_wrong_step(dgrr, five):
    path, _ = five
    path.write_bytes(path.read_bytes()[:-1])
    for command in ("replay", "inspect", "rollback"):
        assert dgrr(command, "--step", 77, "--trace", path).code == 3


def test_replay_shows_the_recomputed_update(dgrr, five):
    path, records = five
    answer = dgrr("replay", "--step", 2, "--trace", path)
    assert (answer.code, answer.err) == (0, "")
    assert f"{path}: step 2 replayed, and with it the chain 0..2; allowed distance 0 ULP" in answer.out
    for name in ("w_after", "b_after"):
        value = three_ways(getattr(records[2], name))
        assert f"{name} recomputed {value} {name} stored {value} 0 ULP" in squeezed(answer.out)


def test_inspect_shows_everything(dgrr, five, ref):
    path, records = five
    answer = dgrr("inspect", "--step", 2, "--trace", path)
    assert (answer.code, answer.err) == (0, "")
    shown = squeezed(answer.out)
    assert "step_id 2 0000000000000002" in shown
    for name, value in records[2]._asdict().items():
        if name != "step_id":
            assert f"{name} {three_ways(value)}" in shown
    x, y = ref.samples(SEED, 3)[2]
    assert f"e = grad_b/2 {three_ways(records[2].grad_b / 2)}" in shown
    assert f"x = grad_w/grad_b {three_ways(records[2].grad_w / records[2].grad_b)}" in shown
    assert f"x of seed 42 {three_ways(x)}" in shown
    assert f"y of seed 42 {three_ways(y)}" in shown
    crc = ref.pack_record(records[2])[64:68][::-1].hex()
    assert f"stored {crc}, computed {crc}" in shown
    assert "step 2, at byte 208" in shown
    assert "created_at 99" in shown


def test_inspect_where_the_gradients_do_not_tell_x(dgrr, ref, tmp_path):
    path = tmp_path / "t"
    path.write_bytes(ref.trace_bytes([ref.step(0, 0.0, 3.0, 2.0, 3.0, LR)]))
    answer = dgrr("inspect", "--step", 0, "--trace", path)
    assert answer.code == 0
    assert "not told by these gradients" in answer.out


def test_rollback_shows_the_state_to_resume_from(dgrr, five):
    path, records = five
    before = path.read_bytes()
    answer = dgrr("rollback", "--step", 2, "--trace", path)
    assert (answer.code, answer.err) == (0, "")
    assert f"{path}: state before step 2; 3 of 5 steps discarded" in answer.out
    assert f"w {three_ways(records[2].w_before)} b {three_ways(records[2].b_before)}" in squeezed(answer.out)
    assert path.read_bytes() == before
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize("step", [0, 2, 4])
def test_rollback_writes_the_prefix(dgrr, five, ref, step):
    path, records = five
    out = path.parent / "the prefix"
    answer = dgrr("rollback", "--step", step, "--trace", path, "--out", out)
    assert answer.code == 0
    assert f"{out}: {step} steps" in answer.out
    assert out.read_bytes() == ref.trace_bytes(records[:step], created_at=99)
    assert dgrr("validate", out).code == 0


def test_rollback_never_writes_onto_its_trace(dgrr, five):
    path, _ = five
    before = path.read_bytes()
    (path.parent / "link").symlink_to(path)
    os.link(path, path.parent / "twin")
    path.with_name("x.partial").symlink_to(path)
    names = sorted(os.listdir(path.parent))
    for out in ("five steps.dgrr", "link", "twin", "x", "../a folder/five steps.dgrr"):
        answer = dgrr("rollback", "--step", 2, "--trace", path, "--out", path.parent / out)
        assert answer.code == 1, out
        assert "argument --out: writing" in answer.err
        assert "would destroy the trace itself" in answer.err
    assert path.read_bytes() == before
    assert sorted(os.listdir(path.parent)) == names


def pair(tmp_path, ref, a, b, **about):
    for name, records in (("a", a), ("b", b)):
        (tmp_path / name).write_bytes(ref.trace_bytes(records, **(about if name == "b" else {})))
    return ["compare", "--a", tmp_path / "a", "--b", tmp_path / "b"]


def test_equal_traces_agree(dgrr, ref, tmp_path):
    run = ref.train(5, LR, SEED)
    answer = dgrr(*pair(tmp_path, ref, run, run, created_at=5))
    assert (answer.code, answer.out, answer.err) == (0, "5 steps agree within 0 ULP\n", "")


def test_a_difference_of_the_header_alone_is_reported_but_no_divergence(dgrr, ref, tmp_path):
    run = ref.train(5, LR, SEED)
    answer = dgrr(*pair(tmp_path, ref, run, run, seed=43))
    assert answer.code == 0
    assert "seed differs: 42 and 43" in answer.out


def test_the_first_difference_is_shown(dgrr, ref, tmp_path):
    one, other = ref.train(5, LR, SEED), ref.train(5, 0.02, SEED)
    answer = dgrr(*pair(tmp_path, ref, one, other, lr=0.02))
    assert answer.code == 4
    assert "learning_rate differs: 0.01 and 0.02" in answer.out
    assert "first difference: step 0, w_after" in answer.out
    assert f"a {three_ways(one[0].w_after)} b {three_ways(other[0].w_after)}" in squeezed(answer.out)
    low, high = sorted((one[0].w_after, other[0].w_after))
    steps = int.from_bytes(struct.pack(">d", high)) - int.from_bytes(struct.pack(">d", low))
    assert f"distance {steps} ULP, allowed 0" in squeezed(answer.out)


def test_a_tolerance_hides_what_is_within_it(dgrr, ref, tmp_path):
    x, y = ref.samples(SEED, 1)[0]
    a = [ref.step(0, 0.0, 1.0, x, y, LR)]
    b = [ref.step(0, 0.0, math.nextafter(1.0, 2.0), x, y, LR)]
    command = pair(tmp_path, ref, a, b)
    answer = dgrr(*command)
    assert answer.code == 4
    distance = int(answer.out.split("distance")[1].split()[0])
    fields = [(getattr(a[0], name), getattr(b[0], name)) for name in ("w_after", "b_after", "loss")]
    widest = max(round(abs(p - q) / math.ulp(min(abs(p), abs(q)))) for p, q in fields)
    assert 0 < distance <= widest
    assert dgrr(*command, "--ulp-tol", widest - 1).code == 4
    assert dgrr(*command, "--ulp-tol", widest + 1).code == 0


def test_a_longer_trace_diverges_where_the_shorter_ends(dgrr, ref, tmp_path):
    run = ref.train(5, LR, SEED)
    answer = dgrr(*pair(tmp_path, ref, run, run[:3]))
    assert answer.code == 4
    assert answer.out == "first difference: step 3, where the shorter trace ends (5 and 3 steps)\n"


def test_a_difference_in_a_later_block(dgrr, ref, tmp_path):
    run = ref.train(8195, LR, SEED)
    x, y = ref.samples(SEED, 8194)[8193]
    moved = [*run[:8193], ref.step(8193, run[8193].w_before, run[8193].b_before, x, y + 1, LR)]
    answer = dgrr(*pair(tmp_path, ref, run, moved))
    assert answer.code == 4
    assert "first difference: step 8193, w_after" in answer.out


def test_compare_validates_both_and_the_first_invalid_one_decides(dgrr, ref, tmp_path):
    run = ref.train(3, LR, SEED)
    command = pair(tmp_path, ref, run, run)
    (tmp_path / "b").write_bytes(b"DGRR\1\0\0\0")
    answer = dgrr(*command)
    assert answer.code == 3
    assert f"{tmp_path / 'b'} is not valid" in answer.err
    (tmp_path / "a").write_bytes(ref.trace_bytes([run[0]._replace(b_after=2.0)]))
    assert dgrr(*command).code == 5

"""Rows of losses: weights, reductions, any leading shape, distances and likelihoods."""

from collections.abc import Callable
from typing import Any

import numpy as np

from dgrr.tape import ops

from .reductions import chances, kinked, labelled, pair, softly_classified
from .row import Arguments, Arrays, Attrs, Draw, Row

REDUCTIONS = ("mean", "sum", "none")


def reduced_by(arguments: Arguments, *more: str) -> Arguments:
    """The same calls under every reduction."""

    def drawn(draw: Draw) -> tuple[Arrays, Attrs]:
        arrays, attrs = arguments(draw)
        return arrays, {**attrs, "reduction": draw.one_of(*REDUCTIONS, *more)}

    return drawn


def classes(scores: str, smoothing: bool) -> Arguments:
    """Scores with several axes before the classes, or none, and weights of the classes."""

    def drawn(draw: Draw) -> tuple[Arrays, Attrs]:
        rows, labels, attrs = labelled(draw, smoothing=smoothing)
        weight = draw.optional(draw.positive(rows.shape[-1]))
        form = draw.one_of("rows", "several", "one")
        if form == "several":
            rows, labels = rows[:, None].repeat(2, 1), labels[:, None].repeat(2, 1)
        if form == "one":
            rows, labels = rows[0], labels[0]
        return {scores: rows, "labels": np.asarray(labels), "weight": weight}, attrs

    return reduced_by(drawn)


def agreed(t: Any, made: Any, peer: Any) -> Any:
    """A formula written out for its gradients, where the peer's weights have none, held to the peer's value."""
    t.testing.assert_close(made.detach(), peer.detach(), rtol=1e-12, atol=1e-12, equal_nan=True)
    return made


def by_labels(name: str, scores: str) -> Callable[..., Any]:
    """The peer's classes stand behind the batch."""

    def peer(t: Any, labels: Any, weight: Any, ignore_index: int | None, reduction: str, **given: Any) -> Any:
        x, smoothing = given.pop(scores), given["label_smoothing"]
        more = given if name == "cross_entropy" else {}
        moved = x.movedim(-1, 1) if x.ndim > 1 else x
        ignored = -100 if ignore_index is None else ignore_index
        fixed = None if weight is None else weight.detach()
        call = getattr(t.nn.functional, name)
        found = call(moved, labels, fixed, ignore_index=ignored, reduction=reduction, **more)
        if weight is None:
            return found
        counted = labels != ignored
        kept = t.where(counted, labels, 0)
        logs = (t.log_softmax(x, -1) if name == "cross_entropy" else x) * weight
        own = logs.gather(-1, kept[..., None])[..., 0]
        terms = -((1 - smoothing) * own + smoothing * logs.mean(-1)) * counted
        total = terms if reduction == "none" else terms.sum()
        return agreed(t, total / (weight[kept] * counted).sum() if reduction == "mean" else total, found)

    return peer


def soft(draw: Draw) -> tuple[Arrays, Attrs]:
    arrays, attrs = softly_classified(draw)
    logits = arrays["logits"]
    assert logits is not None
    return {**arrays, "weight": draw.optional(draw.positive(logits.shape[-1]))}, attrs


def weighted_chances(draw: Draw) -> tuple[Arrays, Attrs]:
    arrays, attrs = chances(draw)
    logits = arrays["logits"]
    assert logits is not None
    last = logits.shape[-1:]
    weights = {
        name: draw.optional(draw.positive(*draw.one_of(last, logits.shape))) for name in ("weight", "pos_weight")
    }
    return {**arrays, **weights}, attrs


def focused(draw: Draw) -> tuple[Arrays, Attrs]:
    arrays, _ = chances(draw)
    logits = arrays["logits"]
    assert logits is not None
    targets = draw.mask(*logits.shape).astype(np.float64)
    return {"logits": logits, "targets": targets}, {
        "alpha": draw.one_of(None, 0.25, draw.real(0.0, 1.0)),
        "gamma": draw.one_of(0, 2, draw.real(0.5, 3.0)),
    }


def focal(t: Any, logits: Any, targets: Any, alpha: float | None, gamma: float, reduction: str) -> Any:
    """As torchvision writes it."""
    p = t.sigmoid(logits)
    loss = t.nn.functional.binary_cross_entropy_with_logits(logits, targets, reduction="none")
    loss = loss * (1 - (p * targets + (1 - p) * (1 - targets))) ** gamma
    if alpha is not None:
        loss = loss * (alpha * targets + (1 - alpha) * (1 - targets))
    return loss if reduction == "none" else getattr(loss, reduction)()


def divergent(draw: Draw) -> tuple[Arrays, Attrs]:
    shape, log_target = draw.shape((1, 3)), draw.one_of(False, True)
    targets = draw.normal(*shape) if log_target else draw.positive(*shape)
    return {"log_probs": draw.normal(*shape), "targets": targets}, {"log_target": log_target}


def counted(draw: Draw) -> tuple[Arrays, Attrs]:
    shape, log_input = draw.shape((0, 3)), draw.one_of(False, True)
    rates = draw.normal(*shape) if log_input else draw.positive(*shape)
    targets = np.abs(draw.away(shape, 1.0, -1.0)) * 2
    attrs = {"log_input": log_input, "full": draw.one_of(False, True), "eps": draw.one_of(1e-8, 0.1)}
    return {"log_rates": rates, "targets": np.where(np.abs(targets - 1) < 0.01, 2.0, targets)}, attrs


def poisson(t: Any, log_rates: Any, targets: Any, **attrs: Any) -> Any:
    return t.nn.functional.poisson_nll_loss(log_rates, targets, **attrs)


def gaussian(draw: Draw) -> tuple[Arrays, Attrs]:
    shape = draw.shape((1, 3))
    arrays: Arrays = {"mean": draw.normal(*shape), "targets": draw.normal(*shape), "var": draw.positive(*shape)}
    return arrays, {"full": draw.one_of(False, True)}


def vectors(*names: str) -> Callable[[Draw], Arrays]:
    def drawn(draw: Draw) -> Arrays:
        shape = (*draw.shape((0, 2), (1, 4)), draw.integer(2, 5))
        return {name: draw.normal(*shape) for name in names}

    return drawn


def distances(draw: Draw) -> tuple[Arrays, Attrs]:
    return vectors("a", "b")(draw), {"p": draw.one_of(1.0, 2.0, 3.0, 2.5), "eps": draw.one_of(1e-6, 0.1)}


def triplets(draw: Draw) -> tuple[Arrays, Attrs]:
    arrays = vectors("anchor", "positive", "negative")(draw)
    attrs = {"margin": draw.real(0.1, 2.0), "p": draw.one_of(2.0, 3.0), "swap": draw.one_of(False, True)}
    return arrays, attrs


def embedded(draw: Draw) -> tuple[Arrays, Attrs]:
    arrays = {name: draw.normal(draw_rows, 4) for draw_rows in (draw.integer(1, 5),) for name in ("a", "b")}
    targets = np.where(draw.mask(len(arrays["a"])), 1, -1)
    return {**arrays, "targets": targets}, {"margin": draw.real(0.0, 0.5)}


def ranked(draw: Draw) -> tuple[Arrays, Attrs]:
    arrays, _ = pair(draw)
    assert arrays["a"] is not None
    targets = np.where(draw.mask(*arrays["a"].shape), 1.0, -1.0)
    return {**arrays, "targets": targets}, {"margin": draw.real(0.0, 1.0)}


def hinged(draw: Draw) -> tuple[Arrays, Attrs]:
    shape, margin = draw.shape((0, 3)), draw.real(0.3, 2.0)
    targets = np.where(draw.mask(*shape), 1, -1)
    return {"x": draw.away(shape, margin), "targets": targets}, {"margin": margin}


def opposed(draw: Draw) -> tuple[Arrays, Attrs]:
    shape = draw.shape((0, 3))
    return {"x": draw.normal(*shape), "targets": np.where(draw.mask(*shape), 1.0, -1.0)}, {}


def smoothed(draw: Draw) -> tuple[Arrays, Attrs]:
    arrays, attrs = kinked(draw)
    return arrays, {"beta": attrs["delta"]}


def probable(draw: Draw) -> tuple[Arrays, Attrs]:
    arrays, _ = chances(draw)
    logits, targets = arrays["logits"], arrays["targets"]
    assert logits is not None
    weight = draw.optional(draw.positive(*draw.one_of(logits.shape[-1:], logits.shape)))
    return {"probs": np.asarray(1 / (1 + np.exp(-logits))), "targets": targets, "weight": weight}, {}


def scored(draw: Draw) -> tuple[Arrays, Attrs]:
    """Scores on a grid and margins off it: no difference of two is a margin."""
    rows, n = draw.integer(1, 5), draw.integer(2, 5)
    scores = np.round(draw.normal(rows, n) * 4) / 4
    labels = draw.indices(0, n, rows)
    attrs = {"p": draw.one_of(1, 2), "margin": draw.one_of(1.1, 0.3)}
    return {"scores": scores, "labels": labels, "weight": draw.optional(draw.positive(n))}, attrs


def several(draw: Draw) -> tuple[Arrays, Attrs]:
    shape = (draw.integer(1, 5), draw.integer(2, 5))
    targets = draw.mask(*shape).astype(np.float64)
    return {"scores": draw.normal(*shape), "targets": targets, "weight": draw.optional(draw.positive(shape[-1]))}, {}


def soft_margin(t: Any, x: Any, targets: Any, reduction: str) -> Any:
    """The peer's targets have no gradient."""
    found = t.nn.functional.soft_margin_loss(x, targets.detach(), reduction=reduction)
    terms = t.nn.functional.softplus(-targets * x)
    return agreed(t, terms if reduction == "none" else getattr(terms, reduction)(), found)


def weighed(name: str) -> Callable[..., Any]:
    """A loss of the peer whose weights have no gradient: ours are held to those of the terms, where all have one."""

    def peer(t: Any, weight: Any, reduction: str, **given: Any) -> Any:
        arrays = [given.pop(key) for key in list(given) if t.is_tensor(given[key])]
        call = getattr(t.nn.functional, name)
        fixed = None if weight is None else weight.detach()
        found = call(*arrays, weight=fixed, reduction=reduction, **given)
        if weight is None:
            return found
        return agreed(t, written(t, name, weight, reduction, *arrays, **given), found)

    return peer


def written(t: Any, name: str, weight: Any, reduction: str, x: Any, targets: Any, **given: Any) -> Any:
    """The formulas with weights as their documentation has them."""
    if name == "multi_margin_loss":
        over = (given["margin"] - x.gather(1, targets[:, None]) + x).clamp(min=0) ** given["p"]
        kept = 1 - t.nn.functional.one_hot(targets, x.shape[1])
        terms = weight[targets] * (over * kept).sum(1) / x.shape[1]
    elif name == "binary_cross_entropy":
        terms = -weight * (targets * x.log() + (1 - targets) * (1 - x).log())
    else:
        logs = t.nn.functional.logsigmoid
        terms = (-weight * (targets * logs(x) + (1 - targets) * logs(-x))).mean(-1)
    return terms if reduction == "none" else getattr(terms, reduction)()


def by_name(name: str) -> Callable[..., Any]:
    """A loss of the peer that takes the arrays in our order."""

    def peer(t: Any, **given: Any) -> Any:
        arrays = [given.pop(key) for key in list(given) if t.is_tensor(given[key])]
        return getattr(t.nn.functional, name)(*arrays, **given)

    return peer


def binary(t: Any, logits: Any, targets: Any, weight: Any, pos_weight: Any, reduction: str) -> Any:
    fixed = {n: w.detach() for n, w in (("weight", weight), ("pos_weight", pos_weight)) if w is not None}
    found = t.nn.functional.binary_cross_entropy_with_logits(logits, targets, **fixed, reduction=reduction)
    if not fixed:
        return found
    log_sigmoid = t.nn.functional.logsigmoid
    positive = 1.0 if pos_weight is None else pos_weight
    terms = -(positive * targets * log_sigmoid(logits) + (1 - targets) * log_sigmoid(-logits))
    terms = terms if weight is None else terms * weight
    return agreed(t, terms if reduction == "none" else getattr(terms, reduction)(), found)


def divergence(t: Any, log_probs: Any, targets: Any, log_target: bool, reduction: str) -> Any:
    """The peer warns of its mean."""
    if reduction == "batchmean":
        return t.nn.functional.kl_div(log_probs, targets, log_target=log_target, reduction=reduction)
    terms = t.nn.functional.kl_div(log_probs, targets, log_target=log_target, reduction="none")
    return terms if reduction == "none" else getattr(terms, reduction)()


def soft_peer(t: Any, logits: Any, targets: Any, **given: Any) -> Any:
    return t.nn.functional.cross_entropy(logits, targets, **given)


def gaussian_peer(t: Any, mean: Any, targets: Any, var: Any, **given: Any) -> Any:
    """The peer's own variance has no gradient: the formula as its documentation has it."""
    terms = 0.5 * (t.log(var) + (mean - targets) ** 2 / var) + (0.5 * np.log(2 * np.pi) if given["full"] else 0.0)
    return terms if given["reduction"] == "none" else getattr(terms, given["reduction"])()


def spoken(draw: Draw) -> tuple[Arrays, Attrs]:
    times, batch, classes, labels = (draw.integer(*ends) for ends in ((1, 8), (1, 3), (2, 5), (0, 3)))
    arrays: Arrays = {
        "log_probs": draw.normal(times, batch, classes),
        "targets": draw.indices(1, classes, batch, labels),
        "input_lengths": draw.indices(1, times + 1, batch),
        "target_lengths": draw.indices(0, labels + 1, batch),
    }
    return arrays, {"blank": 0, "zero_infinity": True}


def ctc(t: Any, log_probs: Any, **given: Any) -> Any:
    return t.nn.functional.ctc_loss(t.log_softmax(log_probs, -1), **given)


ROWS = [
    Row("ctc_loss", ctc, reduced_by(spoken),
        "the peer's gradient is that of the logits, of which a softmax was taken; targets in rows",
        ours=lambda log_probs, **given: ops.ctc_loss(ops.log_softmax(log_probs), **given)),
    Row("mse_loss", by_name("mse_loss"), reduced_by(pair)),
    Row("l1_loss", by_name("l1_loss"), reduced_by(pair)),
    Row("huber_loss", by_name("huber_loss"), reduced_by(kinked)),
    Row("smooth_l1_loss", by_name("smooth_l1_loss"), reduced_by(smoothed)),
    Row("soft_margin_loss", soft_margin, reduced_by(opposed)),
    Row("multi_margin_loss", weighed("multi_margin_loss"), reduced_by(scored)),
    Row("multilabel_soft_margin_loss", weighed("multilabel_soft_margin_loss"), reduced_by(several)),
    Row("binary_cross_entropy", weighed("binary_cross_entropy"), reduced_by(probable), "the gradient at 0 and 1"),
    Row("binary_cross_entropy_with_logits", binary, reduced_by(weighted_chances)),
    Row("cross_entropy", by_labels("cross_entropy", "logits"), classes("logits", smoothing=True),
        "the mean of no rows is NaN in both; the peer's classes stand behind the batch, and its weights have no "
        "gradient"),
    Row("nll_loss", by_labels("nll_loss", "log_probs"), classes("log_probs", smoothing=False),
        "label_smoothing, which the peer has in cross_entropy alone; weights as in cross_entropy"),
    Row("soft_cross_entropy", soft_peer, reduced_by(soft)),
    Row("sigmoid_focal_loss", focal, reduced_by(focused)),
    Row("kl_div", divergence, reduced_by(divergent, "batchmean"), "targets of 0 have no gradient"),
    Row("poisson_nll_loss", poisson, reduced_by(counted)),
    Row("gaussian_nll_loss", gaussian_peer, reduced_by(gaussian), "no gradient below eps"),
    Row("pairwise_distance", by_name("pairwise_distance"), distances),
    Row("cosine_similarity", lambda t, a, b: t.nn.functional.cosine_similarity(a, b, -1),
        lambda draw: (vectors("a", "b")(draw), {})),
    Row("triplet_margin_loss", by_name("triplet_margin_loss"), reduced_by(triplets)),
    Row("cosine_embedding_loss", by_name("cosine_embedding_loss"), reduced_by(embedded), "the place of its eps"),
    Row("margin_ranking_loss", by_name("margin_ranking_loss"), reduced_by(ranked)),
    Row("hinge_embedding_loss", by_name("hinge_embedding_loss"), reduced_by(hinged)),
]  # fmt: skip

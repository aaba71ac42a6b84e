"""The updates of the rules that are formulas, written a second time: in ops, one after the other."""

from collections.abc import Callable
from typing import Any

import numpy as np

from dgrr.runtime.optim import SGD, Adadelta, Adagrad, Adam, Adamax, AdamW, Lion, RAdam, RMSprop
from dgrr.tape import ops

from .by_hand import binary_power


def slope(p: Any, g: Any, *, maximize: bool, weight_decay: float = 0.0) -> Any:
    g = -g if maximize else g
    return g + weight_decay * p if weight_decay else g


def mixed(old: Any, new: Any, share: float) -> Any:
    return share * old + (1.0 - share) * new


def correction(beta: float, step: Any) -> Any:
    return -ops.expm1(step * ops.log(step.tape.const(np.array(beta))))


def like(p: Any, value: Any) -> Any:
    return ops.cast(value, p.dtype)


def shrunk(p: Any, lr: Any, weight_decay: float) -> Any:
    return like(p, 1.0 - lr * weight_decay) * p if weight_decay else p


def lion(rule: Any, p: Any, g: Any, m: Any, *, lr: Any, step: Any) -> Any:
    g = slope(p, g, maximize=rule.maximize)
    c = mixed(m, g, rule.beta1)
    sign = ops.cast(c > 0.0, p.dtype) - ops.cast(c < 0.0, p.dtype)
    return shrunk(p, lr, rule.weight_decay) - like(p, lr) * sign, mixed(m, g, rule.beta2)


def rmsprop(rule: Any, p: Any, g: Any, *buffers: Any, lr: Any, step: Any) -> Any:
    kept = dict(zip(rule.law.buffers, buffers, strict=True))
    g = slope(p, g, maximize=rule.maximize, weight_decay=rule.weight_decay)
    kept["square"] = variance = mixed(kept["square"], g * g, rule.alpha)
    if rule.centered:
        kept["mean"] = mixed(kept["mean"], g, rule.alpha)
        variance = variance - kept["mean"] * kept["mean"]
    change = g / (ops.sqrt(variance) + rule.eps)
    if rule.momentum:
        kept["momentum"] = change = rule.momentum * kept["momentum"] + change
    return p - like(p, lr) * change, *kept.values()


def adagrad(rule: Any, p: Any, g: Any, total: Any, *, lr: Any, step: Any) -> Any:
    g = slope(p, g, maximize=rule.maximize, weight_decay=rule.weight_decay)
    total = total + g * g
    size = lr / (1.0 + (step - 1.0) * rule.lr_decay)
    inside = total + rule.initial if rule.initial else total
    return p - like(p, size) * (g / (ops.sqrt(inside) + rule.eps)), total


def adadelta(rule: Any, p: Any, g: Any, square: Any, change: Any, *, lr: Any, step: Any) -> Any:
    g = slope(p, g, maximize=rule.maximize, weight_decay=rule.weight_decay)
    square = mixed(square, g * g, rule.rho)
    d = ops.sqrt(change + rule.eps) / ops.sqrt(square + rule.eps) * g
    return p - like(p, lr) * d, square, mixed(change, d * d, rule.rho)


def adamax(rule: Any, p: Any, g: Any, m: Any, largest: Any, *, lr: Any, step: Any) -> Any:
    g = slope(p, g, maximize=rule.maximize, weight_decay=rule.weight_decay)
    m = mixed(m, g, rule.beta1)
    largest = ops.maximum(rule.beta2 * largest, ops.absolute(g) + rule.eps)
    return p - like(p, lr / correction(rule.beta1, step)) * (m / largest), m, largest


def radam(rule: Any, p: Any, g: Any, m: Any, v: Any, *, lr: Any, step: Any) -> Any:
    g = slope(p, g, maximize=rule.maximize, weight_decay=0.0 if rule.decoupled else rule.weight_decay)
    p = shrunk(p, lr, rule.weight_decay if rule.decoupled else 0.0)
    m, v = mixed(m, g, rule.beta1), mixed(v, g * g, rule.beta2)
    known, factor = _certainty(rule.beta2, step)
    size = lr / correction(rule.beta1, step)
    divided = like(p, size * factor * known) / (ops.sqrt(v) + rule.eps)
    return p - (divided + like(p, size * (1.0 - known))) * m, m, v


def _certainty(beta2: float, step: Any) -> tuple[Any, Any]:
    c2, last = correction(beta2, step), 2.0 / (1.0 - beta2) - 1.0
    rho = last - 2.0 * step * (1.0 - c2) / c2
    known = ops.cast(rho > 5.0, np.dtype(np.float64))
    rho = known * rho + (1.0 - known) * 5.0
    share = (rho - 4.0) * (rho - 2.0) * last / ((last - 4.0) * (last - 2.0) * rho)
    return known, ops.sqrt(share * c2)


def sgd(rule: Any, p: Any, g: Any, *buffers: Any, lr: Any, step: Any) -> Any:
    g = slope(p, g, maximize=rule.maximize, weight_decay=rule.weight_decay)
    if not buffers:
        return p - like(p, lr) * g
    b = rule.momentum * buffers[0] + (1.0 - rule.dampening) * g
    if rule.maximize:
        begins = like(p, ops.cast(step < 1.5, "float64"))
        b = begins * g + (1.0 - begins) * b
    else:
        b = g if int(step.numpy()) == 1 else b
    return p - like(p, lr) * (g + rule.momentum * b if rule.nesterov else b), b


def first_adam(rule: Any, p: Any, g: Any, m: Any, v: Any, *, lr: Any, step: Any) -> Any:
    decoupled, t = isinstance(rule, AdamW), int(step.numpy())
    c1, c2 = (1.0 - binary_power(beta, t) for beta in rule.betas)
    g = slope(p, g, maximize=False, weight_decay=0.0 if decoupled else rule.weight_decay)
    d = g - m
    m = m + (1.0 - rule.beta1) * d if 1.0 - rule.beta1 < 0.5 else g - rule.beta1 * d
    v = rule.beta2 * v + ((1.0 - rule.beta2) * g) * g
    kept = shrunk(p, lr, rule.weight_decay if decoupled else 0.0)
    return kept - like(p, lr / c1) * m / (ops.sqrt(v) / c2**0.5 + rule.eps), m, v


def adam(rule: Any, p: Any, g: Any, *buffers: Any, lr: Any, step: Any) -> Any:
    if rule.rule.endswith("@1"):
        return first_adam(rule, p, g, *buffers, lr=lr, step=step)
    decoupled, c1, c2 = isinstance(rule, AdamW), correction(rule.beta1, step), correction(rule.beta2, step)
    g = slope(p, g, maximize=rule.maximize, weight_decay=0.0 if decoupled else rule.weight_decay)
    m, v = mixed(buffers[0], g, rule.beta1), mixed(buffers[1], g * g, rule.beta2)
    largest = [ops.maximum(buffers[2], v)] if rule.amsgrad else []
    root = ops.sqrt([v, *largest][-1]) / like(p, ops.sqrt(c2)) + rule.eps
    kept = shrunk(p, lr, rule.weight_decay if decoupled else 0.0)
    return kept - like(p, lr / c1) * m / root, m, v, *largest


TEXTS: dict[type[Any], Callable[..., Any]] = {
    Lion: lion, RMSprop: rmsprop, Adagrad: adagrad, Adadelta: adadelta, Adamax: adamax, RAdam: radam,
    SGD: sgd, Adam: adam, AdamW: adam,
}  # fmt: skip
"""By the class of rules."""

"""Rules of users are looked at when a trainer or a captured step is made, and refused with the reason."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from dgrr.runtime import SGD, Adam, Trainer, capture
from dgrr.runtime.optim import Cosine, Law, Rule
from dgrr.runtime.optim.admission import require_rule
from dgrr.runtime.optim.kernels import step_inc
from dgrr.runtime.optim.methods.adam import adam
from dgrr.runtime.optim.methods.sgd import sgd
from dgrr.tape import DomainError
from dgrr.tape.ops.elementwise.kernels import basic as kernels

from .user_rules import RMSprop, Unit

START = {"w": np.ones(2)}

adam_step, sgd_step = adam.law.kernel, sgd.law.kernel


def loss_fn(p: Any, x: Any) -> Any:
    return (p["w"] * x).sum()


@dataclass(frozen=True)
class Mine(Rule):
    """A rule by the kernel of `SGD`, which a user may use too."""

    rule = "mine@1"
    names = ("lr", "momentum", "dampening", "nesterov", "weight_decay")

    lr: Any = 0.5
    momentum = dampening = nesterov = weight_decay = 0.0

    @property
    def law(self) -> Any:
        return Law(sgd_step, (), (), ())

    @classmethod
    def from_hyperparameters(cls, hyper: Mapping[str, Any]) -> "Rule":
        return cls(hyper["lr"])


def variant(**changes: Any) -> Rule:
    """A rule like it with some attributes of the class replaced."""
    return dataclass(frozen=True)(
        type("Variant", (Mine,), {"__annotations__": {k: Any for k in changes if k == "lr"}, **changes})
    )()


def law(*args: Any) -> property:
    return property(lambda self: Law(*args))


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: 0.1, "optimizer: expected a rule, such as Adam(1e-3), got 0.1"),
    (lambda: RMSprop, "optimizer: expected a rule, such as Adam(1e-3), got <class "),
    (lambda: variant(rule="adam@1"), "rule: expected a name that is not built in, got 'adam@1'; choose another"),
    (lambda: variant(rule="Mine"), "rule: expected a name and a version, such as 'mine@1', of at most 64 ch"),
    (lambda: variant(names=("momentum", "lr")), "names: expected 'lr', then the other hyperparameters, each once"),
    (lambda: variant(names=("lr", "lr")), "each once, got ('lr', 'lr')"),
    (lambda: variant(weight_decay=0.5, from_hyperparameters=classmethod(lambda cls, hyper: Mine(hyper["lr"]))),
     "from_hyperparameters: expected the rule that has {'lr': 0.5, "),
    (lambda: variant(step=lambda self, params, grads, state: None),
     "step: expected the one of Rule, as captured steps run the law and not this, got an override; write it as"),
    (lambda: variant(law=None), "law: expected a Law, or the one of ops_rule, got None"),
    (lambda: variant(law=law(sgd_step, (), ("count",), ())), "law: expected scalars among step, got 'count'"),
    (lambda: variant(scalars={}), "scalars: expected 'step', an int64 without axes, got {}"),
    (lambda: variant(law=law(adam_step, ("m",), (), ())), "got 'adam_step', which stands for something else; writ"),
    (lambda: variant(law=law(kernels.mul, (), (), ())), "got 'mul', which stands for something else"),
    (lambda: variant(counters=((step_inc, ("step", "step")),)), "counters: expected a kernel that is used in one"),
    (lambda: variant(names=(*Mine.names, "rule_of_six"), rule_of_six=1.0, lr=Cosine(0.1, 5)),
     "lr: expected a number, as the rule has 6 hyperparameters and a kernel reads at most 5 under a schedule, got"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "text"), REFUSED)
def test_rules_that_are_refused(make: Callable[[], Any], text: str) -> None:
    rule = make()
    for begin in (lambda: Trainer(loss_fn, START, rule), lambda: capture(loss_fn, START, rule, np.ones(2))):
        with pytest.raises(DomainError) as caught:
            begin()
        assert text in str(caught.value)


def test_a_plain_class_is_refused() -> None:
    class Plain(Rule):
        rule, names, lr = "plain@1", ("lr",), 0.5
        law = property(lambda self: Law(sgd_step, (), (), ()))  # type: ignore[assignment]

        @classmethod
        def from_hyperparameters(cls, hyper: Any) -> "Plain":
            return cls()

    with pytest.raises(
        DomainError, match="Plain: expected a frozen dataclass, because checkpoints identify it by its text"
    ):
        Trainer(loss_fn, START, Plain())


@pytest.mark.parametrize(
    "rule", [SGD(0.1), Adam(Cosine(0.1, 5)), RMSprop(0.1), Unit(0.1), Mine(), Mine(Cosine(0.1, 5))], ids=str
)
def test_rules_that_are_taken(rule: Rule) -> None:
    assert require_rule(rule) is rule
    step = capture(loss_fn, START, rule, np.ones(2))
    assert step.verify(2).ok

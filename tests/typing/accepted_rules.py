"""Rules and schedules of one's own that are formulas: no checker may complain, and they run."""

from dataclasses import dataclass

import numpy as np

from dgrr.runtime.optim import SHARE, PointLaw, PointRule, Rate, Schedule, WarmUp, law, rate
from dgrr.runtime.optim.laws import mixed
from dgrr.tape.record import Number, constant


@law("typed_mean@1", "m")
def typed_mean(p: Number, g: Number, m: Number, lr: float, beta: float) -> tuple[Number, ...]:
    m = mixed(m, g, beta)
    return p - constant(p, lr) * m, m


@dataclass(frozen=True)
class TypedMean(PointRule, law=typed_mean, kinds={"beta": SHARE}):
    lr: float | Schedule = 0.5
    beta: float = 0.5


@rate
def typed_fall(count: float, lr: float, half: float) -> float:
    return lr / (1.0 + count / half)


@dataclass(frozen=True)
class TypedFall(Schedule, formula=typed_fall):
    lr: float
    half: int


def a_rule_is_made_by_its_fields() -> None:
    made: PointLaw = typed_mean
    rule = TypedMean(TypedFall(0.5, half=4), beta=0.0)
    params = {"w": np.ones(2)}
    rule.step(params, {"w": np.ones(2)}, rule.init(params))
    assert params["w"].tolist() == [0.5, 0.5]
    assert rule.hyperparameters(step=5)["lr"] == 0.25
    assert rule.names == made.names


def a_schedule_gives_a_float() -> None:
    made: Rate = typed_fall
    found: float = WarmUp(TypedFall(0.5, half=4), steps=2)(6)
    assert (found, made.takes) == (0.25, 2)

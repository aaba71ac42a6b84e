"""Layers and what they are joined with."""

from typing import Any

from given import Batch, Given, Hid, In, Out, Twin

from dgrr.tape import Var, f32, ops
from dgrr.tape.nn import Linear, ReLU, Residual, Sequential


def input_of_another_width(g: Given) -> None:
    layer = Linear(In, Hid)
    layer(g.params(layer), g.h)  # E: arg-type | reportArgumentType
    # T: linear: argument 'w': expected shape (N, 3), got (3, 4)


def input_that_is_a_scalar(g: Given) -> None:
    layer = Linear(In, Hid)
    layer(g.params(layer), g.s)  # E: arg-type | reportArgumentType
    # T: linear: argument 'x': expected shape (*Bs, K), got ()


def result_of_another_width(g: Given) -> None:
    layer = Linear(In, Hid)
    ops.add(layer(g.params(layer), g.x), g.x)  # E: misc | reportArgumentType
    # T: add: argument 'b': expected shape (5, 3), got (5, 4)


def width_of_a_string() -> None:
    Linear("4", 3)  # E: arg-type | reportArgumentType
    # T: Linear: argument 'in_features': expected a number or a Dim with a size, got '4'


def width_that_is_no_dim() -> None:
    Linear(In, float)  # E: type-var | reportArgumentType
    # T: Linear: argument 'out_features': expected a number or a Dim with a size, got float


def chain_that_breaks(g: Given) -> None:
    g.run(Linear(In, Hid) >> Linear(In, Out))  # E: arg-type | reportOperatorIssue
    # T: 1: linear: argument 'w': expected shape (N, 3), got (2, 4)


def chain_that_breaks_after_an_activation(g: Given) -> None:
    g.run(Linear(In, Hid) >> ReLU() >> Linear(In, Out))  # E: arg-type | reportOperatorIssue
    # T: 2: linear: argument 'w': expected shape (N, 3), got (2, 4)


def chain_that_breaks_far_down(g: Given) -> None:
    body = Linear(In, In) >> ReLU() >> Linear(In, In) >> ReLU() >> Linear(In, In) >> ReLU() >> Linear(In, Hid) >> ReLU()
    g.run(body >> Linear(Out, Out))  # E: arg-type | reportOperatorIssue
    # T: 8: linear: argument 'w': expected shape (N, 3), got (2, 2)


def chain_of_twins(g: Given) -> None:  # R: none
    g.run(Linear(In, Hid) >> Linear(Twin, Out))  # E: arg-type | reportOperatorIssue


def chain_of_a_number() -> None:  # R: DTypeError
    _ = Linear(In, Hid) >> 3  # E: operator | reportOperatorIssue
    # T: >>: expected a layer or a function of x, got int


def chain_input(g: Given) -> None:
    model = Linear(In, Hid) >> ReLU() >> Linear(Hid, Out)
    model(g.params(model), g.h)  # E: arg-type | reportArgumentType
    # T: 0: linear: argument 'w': expected shape (N, 3), got (3, 4)


def chain_result(g: Given) -> None:
    model = Linear(In, Hid) >> ReLU() >> Linear(Hid, Out)
    ops.mse_loss(model(g.params(model), g.x), g.h)  # E: misc | reportArgumentType
    # T: mse_loss: argument 'b': expected shape (5, 2), got (5, 3)


def sequential_that_breaks(g: Given) -> None:
    g.run(Sequential(Linear(In, Hid), Linear(Out, Out)))  # E: misc | reportArgumentType
    # T: 1: linear: argument 'w': expected shape (N, 3), got (2, 2)


def sequential_that_breaks_after_an_activation(g: Given) -> None:
    g.run(Sequential(Linear(In, Hid), ReLU(), Linear(Out, Out)))  # E: - | reportArgumentType
    # T: 2: linear: argument 'w': expected shape (N, 3), got (2, 2)


def sequential_that_breaks_after_a_typed_activation(g: Given) -> None:
    g.run(Sequential(Linear(In, Hid), ReLU[Hid](), Linear(Out, Out)))  # E: misc | reportArgumentType
    # T: 2: linear: argument 'w': expected shape (N, 3), got (2, 2)


def sequential_of_eight_that_breaks(g: Given) -> None:
    a, b = Linear(In, In), ReLU[In]()
    g.run(Sequential(a, b, a, b, a, b, a, Linear(Hid, Out)))  # E: misc | reportArgumentType
    # T: 7: linear: argument 'w': expected shape (N, 4), got (2, 3)


def sequential_input(g: Given) -> None:
    model = Sequential(Linear(In, Hid), ReLU(), Linear(Hid, Out))
    model(g.params(model), g.h)  # E: arg-type | reportArgumentType
    # T: 0: linear: argument 'w': expected shape (N, 3), got (3, 4)


def sequential_result(g: Given) -> None:
    model = Sequential(Linear(In, Hid), ReLU(), Linear(Hid, Out))
    ops.add(model(g.params(model), g.x), g.x)  # E: misc | reportArgumentType
    # T: add: argument 'b': expected shape (5, 2), got (5, 4)


def sequential_of_a_class() -> None:  # R: DTypeError
    Sequential(Linear(In, Hid), ReLU)  # E: arg-type | reportArgumentType
    # T: Sequential: layer 1: expected a layer or a function of x, got the class ReLU; write ReLU(…)


def residual_of_two_inputs() -> None:  # R: DTypeError
    Residual(ops.add)  # E: arg-type | reportArgumentType
    # T: Residual: argument 'layer': expected a function of x alone, got add: missing a required argument: 'b';


def assigned_with_other_ends() -> None:  # R: none
    _: Sequential[In, Hid] = Linear(In, Hid) >> Linear(Hid, Out)  # E: arg-type | reportAssignmentType


def activation_of_integers(g: Given) -> None:  # R: DTypeError
    ReLU()({}, g.labels)  # E: type-var | reportArgumentType
    # T: relu: argument 'x': expected float32 or float64, got int64


def activation_result(g: Given) -> None:
    ops.add(ReLU()({}, g.x), g.h)  # E: misc | reportArgumentType
    # T: add: argument 'b': expected shape (5, 4), got (5, 3)


def function_of_another_result(g: Given) -> None:  # R: none
    def hidden(p: Any, x: Var[f32, Batch, In]) -> Var[f32, Batch, Out]:
        return Linear(In, Hid)(p, x)  # E: return-value | reportReturnType

    hidden(g.params(Linear(In, Hid)), g.x)

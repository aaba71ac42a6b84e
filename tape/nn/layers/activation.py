"""Activations as layers: no parameters. Each is a row: its op, its fields, and what they take."""

from dataclasses import dataclass

from ... import ops
from ...record.kinds.values import FINITE, POSITIVE
from ..kinds import either
from ..layer import Features
from ..op_layer import Activation


@dataclass(frozen=True)
class ReLU(Activation[Features], op=ops.relu):
    """``max(x, 0)``.

    Source: Nair and Hinton (2010); torch.nn.ReLU.

    >>> from dgrr.tape import Tape, nn
    >>> nn.ReLU()({}, Tape().leaf([-1.0, 2.0])).numpy()
    array([0., 2.])
    """


@dataclass(frozen=True)
class Tanh(Activation[Features], op=ops.tanh):
    """The hyperbolic tangent.

    Source: torch.nn.Tanh.

    >>> from dgrr.tape import Tape, nn
    >>> nn.Tanh()({}, Tape().leaf([0.0, 1.0])).numpy().round(4)
    array([0.    , 0.7616])
    """


@dataclass(frozen=True)
class Sigmoid(Activation[Features], op=ops.sigmoid):
    """``1 / (1 + e ** -x)``.

    Source: torch.nn.Sigmoid.

    >>> from dgrr.tape import Tape, nn
    >>> nn.Sigmoid()({}, Tape().leaf([0.0, 1000.0])).numpy()
    array([0.5, 1. ])
    """


@dataclass(frozen=True)
class Softplus(Activation[Features], op=ops.softplus):
    """``log(1 + e ** x)``.

    Source: Dugas, Bengio, Bélisle, Nadeau and Garcia (2001); torch.nn.Softplus without its threshold.

    >>> from dgrr.tape import Tape, nn
    >>> nn.Softplus()({}, Tape().leaf([0.0, 100.0])).numpy().round(4)
    array([  0.6931, 100.    ])
    """


@dataclass(frozen=True)
class SiLU(Activation[Features], op=ops.silu):
    """``x * sigmoid(x)``.

    Source: Elfwing, Uchibe and Doya (2018); torch.nn.SiLU.

    >>> from dgrr.tape import Tape, nn
    >>> nn.SiLU()({}, Tape().leaf([0.0, 1.0])).numpy().round(4)
    array([0.    , 0.7311])
    """


@dataclass(frozen=True)
class GELU(Activation[Features], op=ops.gelu, kinds={"approximate": either("none", "tanh")}):
    """``x`` times the normal distribution at x, or its approximation by ``approximate="tanh"``.

    Source: Hendrycks and Gimpel (2016); torch.nn.GELU.

    >>> from dgrr.tape import Tape, nn
    >>> nn.GELU()({}, Tape().leaf([0.0, 1.0])).numpy().round(4)
    array([0.    , 0.8413])
    """

    approximate: str = "none"


@dataclass(frozen=True)
class LeakyReLU(Activation[Features], op=ops.leaky_relu, kinds={"negative_slope": FINITE}):
    """``x`` where it is positive, else ``x * negative_slope``.

    Source: Maas, Hannun and Ng (2013); torch.nn.LeakyReLU.

    >>> from dgrr.tape import Tape, nn
    >>> nn.LeakyReLU(0.25)({}, Tape().leaf([2.0, -2.0])).numpy()
    array([ 2. , -0.5])
    """

    negative_slope: float = 0.01


@dataclass(frozen=True)
class ELU(Activation[Features], op=ops.elu, kinds={"alpha": FINITE}):
    """``x`` where it is positive, else ``alpha * (e ** x - 1)``.

    Source: Clevert, Unterthiner and Hochreiter (2016); torch.nn.ELU.

    >>> from dgrr.tape import Tape, nn
    >>> nn.ELU()({}, Tape().leaf([2.0, -1.0])).numpy().round(4)
    array([ 2.    , -0.6321])
    """

    alpha: float = 1.0


@dataclass(frozen=True)
class CELU(Activation[Features], op=ops.celu, kinds={"alpha": POSITIVE}):
    """``x`` where it is positive, else ``alpha * (e ** (x / alpha) - 1)``.

    Source: Barron (2017), Continuously differentiable exponential linear units; torch.nn.CELU.

    >>> from dgrr.tape import Tape, nn
    >>> nn.CELU(2.0)({}, Tape().leaf([2.0, -1.0])).numpy().round(4)
    array([ 2.    , -0.7869])
    """

    alpha: float = 1.0


@dataclass(frozen=True)
class SELU(Activation[Features], op=ops.selu):
    """``λ x`` where x is positive, else ``λ α (e ** x - 1)``, with λ = 1.0507… and α = 1.6733….

    Source: Klambauer, Unterthiner, Mayr and Hochreiter (2017); torch.nn.SELU.

    >>> from dgrr.tape import Tape, nn
    >>> nn.SELU()({}, Tape().leaf([2.0, -1.0])).numpy().round(4)
    array([ 2.1014, -1.1113])
    """


@dataclass(frozen=True)
class ReLU6(Activation[Features], op=ops.relu6):
    """``min(6, max(0, x))``.

    Source: Krizhevsky (2010); torch.nn.ReLU6.

    >>> from dgrr.tape import Tape, nn
    >>> nn.ReLU6()({}, Tape().leaf([-1.0, 2.0, 8.0])).numpy()
    array([0., 2., 6.])
    """


@dataclass(frozen=True)
class Hardswish(Activation[Features], op=ops.hardswish):
    """``x * relu6(x + 3) / 6``.

    Source: Howard and others (2019), Searching for MobileNetV3; torch.nn.Hardswish.

    >>> from dgrr.tape import Tape, nn
    >>> nn.Hardswish()({}, Tape().leaf([-4.0, 1.5, 4.0])).numpy()
    array([-0.   ,  1.125,  4.   ])
    """


@dataclass(frozen=True)
class Mish(Activation[Features], op=ops.mish):
    """``x * tanh(softplus(x))``.

    Source: Misra (2020); torch.nn.Mish.

    >>> from dgrr.tape import Tape, nn
    >>> nn.Mish()({}, Tape().leaf([0.0, 1.0])).numpy().round(4)
    array([0.    , 0.8651])
    """


@dataclass(frozen=True)
class Softsign(Activation[Features], op=ops.softsign):
    """``x / (1 + |x|)``.

    Source: Glorot and Bengio (2010); torch.nn.Softsign.

    >>> from dgrr.tape import Tape, nn
    >>> nn.Softsign()({}, Tape().leaf([1.0, -3.0])).numpy()
    array([ 0.5 , -0.75])
    """


@dataclass(frozen=True)
class LogSigmoid(Activation[Features], op=ops.logsigmoid):
    """The logarithm of `Sigmoid`, more exact than ``log`` of it.

    Source: torch.nn.LogSigmoid.

    >>> from dgrr.tape import Tape, nn
    >>> nn.LogSigmoid()({}, Tape().leaf([0.0, -100.0])).numpy().round(4)
    array([  -0.6931, -100.    ])
    """


@dataclass(frozen=True)
class Softmax(Activation[Features], op=ops.softmax):
    """``exp(x) / sum(exp(x))`` along an axis, the last unless given.

    Source: Bridle (1990); torch.nn.Softmax.
    Raises:
        ShapeError: when called, x has no such axis.

    >>> from dgrr.tape import Tape, nn
    >>> nn.Softmax()({}, Tape().leaf([0.0, 0.0, -np.inf])).numpy()
    array([0.5, 0.5, 0. ])
    """

    axis: int = -1


@dataclass(frozen=True)
class LogSoftmax(Activation[Features], op=ops.log_softmax):
    """The logarithm of `Softmax`, more exact than ``log`` of it.

    Source: torch.nn.LogSoftmax.
    Raises:
        ShapeError: when called, x has no such axis.

    >>> from dgrr.tape import Tape, nn
    >>> nn.LogSoftmax()({}, Tape().leaf([0.0, 0.0])).numpy().round(4)
    array([-0.6931, -0.6931])
    """

    axis: int = -1

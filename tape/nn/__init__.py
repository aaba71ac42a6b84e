"""Layers: frozen descriptions of functions of named parameters."""

from typing import TYPE_CHECKING

from ...base.pytorch_names import refuse_names as _refuse_names
from . import initializers as init
from .layer import Layer, SameShape, Sequential
from .layers.activation import (
    CELU,
    ELU,
    GELU,
    SELU,
    Hardswish,
    LeakyReLU,
    LogSigmoid,
    LogSoftmax,
    Mish,
    ReLU,
    ReLU6,
    Sigmoid,
    SiLU,
    Softmax,
    Softplus,
    Softsign,
    Tanh,
)
from .layers.batch_norm import BatchNorm
from .layers.containers import Flatten, Identity, Residual, Unflatten
from .layers.dropout import Dropout
from .layers.embedding import Embedding
from .layers.gated import GLU, Bilinear, PReLU, SwiGLU
from .layers.linear import Linear
from .layers.norm import GroupNorm, InstanceNorm, LayerNorm, RMSNorm
from .layers.sequences.attention import MultiHeadAttention
from .layers.sequences.cells import GRUCell, LSTMCell, RNNCell
from .layers.sequences.positions import LearnedPositions, Rotary, SinusoidalPositions
from .layers.sequences.recurrent import GRU, LSTM, RNN
from .layers.sequences.transformer import TransformerBlock, TransformerDecoderBlock
from .layers.spatial.adaptive_pool import (
    AdaptiveAvgPool,
    AdaptiveAvgPool1d,
    AdaptiveAvgPool2d,
    AdaptiveMaxPool,
    AdaptiveMaxPool1d,
    AdaptiveMaxPool2d,
)
from .layers.spatial.conv import Conv, Conv1d, Conv2d, ConvTranspose, ConvTranspose1d, ConvTranspose2d
from .layers.spatial.pool import AvgPool, AvgPool1d, AvgPool2d, LPPool, MaxPool, MaxPool1d, MaxPool2d, SmoothMaxPool
from .layers.spatial.upsample import Pad, PixelShuffle, PixelUnshuffle, Upsample, UpsampleBilinear, UpsampleNearest
from .layers.tied import Tied
from .parameters import Parameter
from .scope import Params as Params
from .state_dict import load, load_state_dict, save
from .torch_weights import TorchWeights, load_torch, to_torch

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "GRU",
    "LSTM",
    "RNN",
    "SELU",
    "AdaptiveAvgPool",
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveMaxPool",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AvgPool",
    "AvgPool1d",
    "AvgPool2d",
    "BatchNorm",
    "Bilinear",
    "Conv",
    "Conv1d",
    "Conv2d",
    "ConvTranspose",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "Dropout",
    "Embedding",
    "Flatten",
    "GRUCell",
    "GroupNorm",
    "Hardswish",
    "Identity",
    "InstanceNorm",
    "LPPool",
    "LSTMCell",
    "Layer",
    "LayerNorm",
    "LeakyReLU",
    "LearnedPositions",
    "Linear",
    "LogSigmoid",
    "LogSoftmax",
    "MaxPool",
    "MaxPool1d",
    "MaxPool2d",
    "Mish",
    "MultiHeadAttention",
    "PReLU",
    "Pad",
    "Parameter",
    "Params",
    "PixelShuffle",
    "PixelUnshuffle",
    "RMSNorm",
    "RNNCell",
    "ReLU",
    "ReLU6",
    "Residual",
    "Rotary",
    "SameShape",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "SinusoidalPositions",
    "SmoothMaxPool",
    "Softmax",
    "Softplus",
    "Softsign",
    "SwiGLU",
    "Tanh",
    "Tied",
    "TorchWeights",
    "TransformerBlock",
    "TransformerDecoderBlock",
    "Unflatten",
    "Upsample",
    "UpsampleBilinear",
    "UpsampleNearest",
    "init",
    "load",
    "load_state_dict",
    "load_torch",
    "save",
    "to_torch",
]

if not TYPE_CHECKING:  # checkers refuse by themselves what this refuses
    __getattr__ = _refuse_names(__name__, __all__)

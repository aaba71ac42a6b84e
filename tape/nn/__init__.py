"""Layers: frozen descriptions of functions of named parameters."""

from . import initializers as init
from .layer import Layer, SameShape, Sequential
from .layers.activation import ELU, GELU, LeakyReLU, ReLU, Sigmoid, SiLU, Softplus, Tanh
from .layers.attention import MultiHeadAttention
from .layers.batch_norm import BatchNorm
from .layers.containers import Flatten, Residual, Unflatten
from .layers.conv import Conv, Conv1d, Conv2d, ConvTranspose, ConvTranspose1d, ConvTranspose2d
from .layers.dropout import Dropout
from .layers.embedding import Embedding
from .layers.linear import Linear
from .layers.norm import GroupNorm, InstanceNorm, LayerNorm, RMSNorm
from .layers.pool import (
    AdaptiveAvgPool,
    AdaptiveAvgPool1d,
    AdaptiveAvgPool2d,
    AdaptiveMaxPool,
    AdaptiveMaxPool1d,
    AdaptiveMaxPool2d,
    AvgPool,
    AvgPool1d,
    AvgPool2d,
    LPPool,
    MaxPool,
    MaxPool1d,
    MaxPool2d,
    SmoothMaxPool,
)
from .layers.softmax import LogSoftmax, Softmax
from .layers.transformer import TransformerBlock
from .layers.upsample import Pad, PixelShuffle, PixelUnshuffle, Upsample, UpsampleBilinear, UpsampleNearest
from .parameters import Parameter
from .state_dict import load, load_state_dict, save

__all__ = [
    "ELU",
    "GELU",
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
    "Conv",
    "Conv1d",
    "Conv2d",
    "ConvTranspose",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "Dropout",
    "Embedding",
    "Flatten",
    "GroupNorm",
    "InstanceNorm",
    "LPPool",
    "Layer",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "LogSoftmax",
    "MaxPool",
    "MaxPool1d",
    "MaxPool2d",
    "MultiHeadAttention",
    "Pad",
    "Parameter",
    "PixelShuffle",
    "PixelUnshuffle",
    "RMSNorm",
    "ReLU",
    "Residual",
    "SameShape",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "SmoothMaxPool",
    "Softmax",
    "Softplus",
    "Tanh",
    "TransformerBlock",
    "Unflatten",
    "Upsample",
    "UpsampleBilinear",
    "UpsampleNearest",
    "init",
    "load",
    "load_state_dict",
    "save",
]

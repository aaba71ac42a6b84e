"""Layers: frozen descriptions of functions of named parameters."""

from . import init
from .activation import ELU, GELU, LeakyReLU, ReLU, Sigmoid, SiLU, Softplus, Tanh
from .attention import MultiHeadAttention
from .batch_norm import BatchNorm
from .conv import Conv, Conv1d, Conv2d, ConvTranspose, ConvTranspose1d, ConvTranspose2d
from .dropout import Dropout
from .embedding import Embedding
from .layer import Layer, Parameter, SameShape, Sequential
from .linear import Linear
from .norm import GroupNorm, InstanceNorm, LayerNorm, RMSNorm
from .pool import (
    AdaptiveAvgPool,
    AdaptiveAvgPool1d,
    AdaptiveAvgPool2d,
    AdaptiveMaxPool,
    AdaptiveMaxPool1d,
    AdaptiveMaxPool2d,
    AvgPool,
    AvgPool1d,
    AvgPool2d,
    MaxPool,
    MaxPool1d,
    MaxPool2d,
    SmoothMaxPool,
)
from .softmax import LogSoftmax, Softmax
from .state_dict import load, load_state_dict, save
from .structure import Flatten, Residual, Unflatten
from .transformer import TransformerBlock
from .upsample import UpsampleBilinear, UpsampleNearest

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
    "Layer",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "LogSoftmax",
    "MaxPool",
    "MaxPool1d",
    "MaxPool2d",
    "MultiHeadAttention",
    "Parameter",
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
    "UpsampleBilinear",
    "UpsampleNearest",
    "init",
    "load",
    "load_state_dict",
    "save",
]

"""Layers: frozen descriptions of functions of named parameters."""

from .activation import ELU, GELU, LeakyReLU, ReLU, Sigmoid, SiLU, Softplus, Tanh
from .layer import Layer, Parameter
from .linear import Linear
from .sequential import Sequential

__all__ = [
    "ELU",
    "GELU",
    "Layer",
    "LeakyReLU",
    "Linear",
    "Parameter",
    "ReLU",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "Softplus",
    "Tanh",
]

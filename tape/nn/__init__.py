"""Layers: frozen descriptions of functions of named parameters."""

from .activation import ReLU, Tanh
from .layer import Layer, Parameter, Sequential
from .linear import Linear

__all__ = ["Layer", "Linear", "Parameter", "ReLU", "Sequential", "Tanh"]

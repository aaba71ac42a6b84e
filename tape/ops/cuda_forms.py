"""All kernels that are written in CUDA C++, by the names of the CPU kernels that they stand for."""

from ..numerics.cuda.written import Form, written
from .conv import cuda_convolutions as cuda_convolutions
from .linear import cuda_products as cuda_products

FORMS: dict[str, Form] = written
"""The forms of `written`, once the modules that fill it are imported."""

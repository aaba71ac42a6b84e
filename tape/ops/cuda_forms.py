"""All kernels that are written in CUDA C++, by the names of the CPU kernels that they stand for."""

from ..numerics.cuda.written import Form, written
from .attention import cuda_attention as cuda_attention
from .conv import cuda_convolutions as cuda_convolutions
from .linear import cuda_products as cuda_products
from .norm import cuda_norms as cuda_norms
from .reduce import cuda_rows as cuda_rows

FORMS: dict[str, Form] = written
"""The forms of `written`, once the modules that fill it are imported."""

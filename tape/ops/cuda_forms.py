"""All kernels that are written in CUDA C++, by the names of the CPU kernels that they stand for."""

from ..numerics.cuda.written import CudaForm, written
from .attention import cuda as attention
from .conv import cuda as conv
from .indices import cuda as indices
from .linear.cuda import products as linear
from .norm import cuda as norm
from .reduce import cuda as reduce
from .shape import cuda as shape

FAMILIES = (attention, conv, indices, linear, norm, reduce, shape)
"""The modules that fill `written` as they are imported."""

FORMS: dict[str, CudaForm] = written
"""The forms of `written`, once the modules that fill it are imported."""

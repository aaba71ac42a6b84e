"""Models in the format of ONNX: written from what a captured forward pass computes, read into layers.

Needs the packages of the extra ``onnx``.
"""

from .export.export import export
from .export.graph import ExportError

__all__ = ["ExportError", "export"]

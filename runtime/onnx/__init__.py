"""Models in the format of ONNX: written from what a captured forward pass computes, read into layers.

Needs the packages of the extra ``onnx``.
"""

from .export.export import export
from .export.graph import ExportError
from .load.load import OnnxModel, load
from .load.operator import ImportedModelError

__all__ = ["ExportError", "ImportedModelError", "OnnxModel", "export", "load"]

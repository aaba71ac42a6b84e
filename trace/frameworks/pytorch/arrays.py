"""PyTorch's tensors as arrays."""

from typing import Any

from ....base.arrays import Array


def array(tensor: Any) -> Array:
    """A copy of a tensor's values in the memory of the CPU.

    Floats of less than 32 bits become float32, exactly; complex numbers become pairs along a last axis.
    """
    tensor = tensor.detach()
    if tensor.is_sparse:
        tensor = tensor.to_dense()
    if tensor.is_floating_point() and tensor.element_size() < 4:
        tensor = tensor.float()
    copied: Array = tensor.resolve_conj().resolve_neg().to("cpu", copy=True).numpy()
    return copied[..., None].view(f"f{copied.itemsize // 2}") if copied.dtype.kind == "c" else copied

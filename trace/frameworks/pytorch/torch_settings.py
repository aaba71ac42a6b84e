"""What the results of PyTorch depend on, as a trace says it."""

from collections.abc import Mapping
from typing import Any


def settings_of(torch: Any, params: Mapping[str, Any]) -> dict[str, Any]:
    """What the results of PyTorch depend on."""
    return {
        "devices": sorted({str(param.device) for param in params.values()}),
        "threads": torch.get_num_threads(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "matmul": torch.get_float32_matmul_precision(),
        "capability": torch.backends.cpu.get_cpu_capability(),
        "onednn": bool(torch.backends.mkldnn.is_available() and torch.backends.mkldnn.enabled),
        "mkl": bool(torch.backends.mkl.is_available()),
        **(_cuda_settings(torch) if torch.cuda.is_available() else {}),
    }


def _cuda_settings(torch: Any) -> dict[str, Any]:
    """What results on NVIDIA's devices depend on."""
    cuda, cudnn = torch.backends.cuda, torch.backends.cudnn
    return {
        "gpu": torch.cuda.get_device_name(),
        "cuda": torch.version.cuda,
        "cudnn": cudnn.version(),
        "tf32": [bool(cuda.matmul.allow_tf32), bool(cudnn.allow_tf32)],
        "benchmark": bool(cudnn.benchmark),
        "attention": [
            bool(cuda.flash_sdp_enabled()),
            bool(cuda.mem_efficient_sdp_enabled()),
            bool(cuda.math_sdp_enabled()),
        ],
    }

"""What the results of PyTorch depend on, as a trace says it."""

import os
import subprocess
from collections.abc import Mapping
from functools import cache
from typing import Any

_VARIABLES = (
    *("ATEN_CPU_CAPABILITY", "DNNL_MAX_CPU_ISA", "ONEDNN_MAX_CPU_ISA", "MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS"),
    *("OPENBLAS_CORETYPE", "CUBLAS_WORKSPACE_CONFIG", "NVIDIA_TF32_OVERRIDE", "NCCL_ALGO", "NCCL_PROTO"),
)
"""What people set in the environment of a process to have other kernels."""


def settings_of(torch: Any, params: Mapping[str, Any]) -> dict[str, Any]:
    """What the results of PyTorch depend on."""
    return {
        "devices": sorted({str(param.device) for param in params.values()}),
        "threads": torch.get_num_threads(),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "fill uninitialized": bool(torch.utils.deterministic.fill_uninitialized_memory),
        "denormals flushed": _flushes(torch),
        "matmul": torch.get_float32_matmul_precision(),
        "capability": torch.backends.cpu.get_cpu_capability(),
        "onednn": bool(torch.backends.mkldnn.is_available() and torch.backends.mkldnn.enabled),
        "mkl": bool(torch.backends.mkl.is_available()),
        "variables": {name: os.environ[name] for name in _VARIABLES if name in os.environ},
        **(_cuda_settings(torch) if torch.cuda.is_available() else {}),
    }


@cache
def commit() -> str | None:
    """The commit of the user's repository, with a plus where files differ from it; None outside of one."""
    try:
        said = subprocess.run(
            ["git", "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty=+"],
            capture_output=True,
            text=True,
            timeout=10,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return said.stdout.strip()


def _flushes(torch: Any) -> bool:
    """Whether the smallest numbers become zero."""
    return not bool(torch.tensor(1e-40) * 0.5)


def _cuda_settings(torch: Any) -> dict[str, Any]:
    """What results on NVIDIA's devices depend on."""
    cuda, cudnn = torch.backends.cuda, torch.backends.cudnn
    return {
        "gpu": torch.cuda.get_device_name(),
        "cuda": torch.version.cuda,
        "cudnn": cudnn.version(),
        "bf16 reduction": bool(cuda.matmul.allow_bf16_reduced_precision_reduction),
        "fp16 reduction": bool(cuda.matmul.allow_fp16_reduced_precision_reduction),
        "cudnn deterministic": bool(cudnn.deterministic),
        "tf32": [bool(cuda.matmul.allow_tf32), bool(cudnn.allow_tf32)],
        "benchmark": bool(cudnn.benchmark),
        "attention": [
            bool(cuda.flash_sdp_enabled()),
            bool(cuda.mem_efficient_sdp_enabled()),
            bool(cuda.math_sdp_enabled()),
        ],
    }

"""What node must be told."""

import subprocess
from functools import cache


@cache
def relaxed_simd() -> list[str]:
    """What older versions must be told to have relaxed SIMD."""
    flag = "--experimental-wasm-relaxed-simd"
    known = subprocess.run(["node", flag, "-e", "0"], capture_output=True, check=False).returncode == 0
    return [flag] if known else []

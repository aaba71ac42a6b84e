"""Compilation by NVRTC: where code is kept, when it is compiled anew, and what errors say."""

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dgrr.base import kernel_cache
from dgrr.tape.numerics.cuda import nvrtc

from .host import needs_cuda

TEXT = '#include "same_bits.cuh"\nKERNEL(32, 1) f(PARAMETER Call call, Report) { at<real>(call, 0)[0] = VALUE; }'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DGRR_CACHE_DIR", str(tmp_path))
    return tmp_path


def compiled(n: int = 1, architecture: str = "compute_90", text: str = TEXT) -> bytes:
    return nvrtc.compiled_text("f.cu", text, (("REAL", "float"), ("VALUE", n)), architecture)


@needs_cuda
def test_code_is_kept_and_loaded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code = compiled()
    (kept,) = folder.iterdir()
    assert kept.read_bytes() == code and kept.suffix == ".ptx" and kernel_cache.files() == [kept]
    monkeypatch.setattr(nvrtc, "_compile", lambda *_: pytest.fail("it is compiled anew"))
    assert compiled() == code


@needs_cuda
def test_whatever_code_depends_on_makes_another_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled()
    compiled(2)
    compiled(architecture="compute_80")
    compiled(text=TEXT + "\n")
    assert len(list(folder.iterdir())) == 4
    header = nvrtc.HEADERS / "same_bits.cuh"
    (folder / "headers").mkdir()
    (folder / "headers/same_bits.cuh").write_text(header.read_text() + "\n")
    monkeypatch.setattr(nvrtc, "HEADERS", folder / "headers")
    compiled()
    assert len(list(folder.glob("*.ptx"))) == 5
    monkeypatch.setattr(nvrtc, "version", lambda: (99, 0))
    compiled()
    assert len(list(folder.glob("*.ptx"))) == 6


@needs_cuda
def test_code_is_compiled_where_no_folder_can_be_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "file").write_text("")
    monkeypatch.setenv("DGRR_CACHE_DIR", str(folder / "file"))
    kernel_cache.warn_of_no_folder.cache_clear()
    with pytest.warns(RuntimeWarning, match="kernels are compiled again in every process"):
        assert b".visible .entry f" in compiled()
    kernel_cache.warn_of_no_folder.cache_clear()


@needs_cuda
def test_an_error_shows_the_log_and_the_options(folder: Path) -> None:
    said = r"(?s)refuses f.cu with --gpu-architecture=compute_90 .*-DVALUE=1.*f.cu\(2\): error: "
    with pytest.raises(nvrtc.CudaCompileError, match=said):
        compiled(text=TEXT.replace("VALUE", "VALUES"))
    assert not list(folder.iterdir())


@pytest.fixture
def without_nvrtc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def missing(name: str) -> Any:
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr(importlib, "import_module", missing)
    nvrtc._nvrtc.cache_clear(), nvrtc.version.cache_clear()
    yield
    nvrtc._nvrtc.cache_clear(), nvrtc.version.cache_clear()


@pytest.mark.usefixtures("without_nvrtc")
def test_an_error_says_what_to_install(folder: Path) -> None:
    with pytest.raises(ImportError) as caught:
        compiled()
    assert str(caught.value) == (
        "dgrr: CUDA kernels are compiled by NVRTC, which was not found: expected the packages cuda-bindings and "
        "nvidia-cuda-nvrtc, got ModuleNotFoundError (No module named 'cuda.bindings.nvrtc'); install them with: "
        'pip install "dgrr[cuda]"'
    )

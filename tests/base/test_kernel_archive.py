"""The folder of kernels in one file: whole or refused, and nothing of it stands half written or elsewhere."""

import io
import json
import tarfile
from hashlib import sha256
from pathlib import Path

import pytest

from dgrr.base import kernel_cache
from dgrr.base.kernel_archive import CONTENTS, KernelArchiveError, pack, read, unpack

FILES = {"x86-64-v3/add-12.nbc": b"machine code", "gemm-34.ptx": b"text"}
MADE_BY = {"level": "x86-64-v3", "compiler": "numba 1.0"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of kernels, empty."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DGRR_CACHE_DIR", str(tmp_path / "kernels"))
    return tmp_path / "kernels"


def held(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def packed(folder: Path) -> str:
    """An archive of kernels that are not in the folder any more."""
    for name, data in FILES.items():
        assert kernel_cache.keep(name, data)
    pack("kernels.tar", MADE_BY, list(FILES))
    kernel_cache.clear()
    return "kernels.tar"


def test_what_was_packed_comes_out_elsewhere(folder: Path) -> None:
    archive = read(packed(folder))
    assert archive == (MADE_BY, FILES)
    assert held(folder) == {}
    assert sorted(unpack(archive)) == sorted(FILES)
    assert held(folder) == FILES
    assert unpack(archive) == []


def test_what_is_there_already_is_left_as_it_is(folder: Path) -> None:
    archive = read(packed(folder))
    kernel_cache.keep("gemm-34.ptx", b"mine")
    assert unpack(archive) == ["x86-64-v3/add-12.nbc"]
    assert held(folder)["gemm-34.ptx"] == b"mine"


def test_nothing_half_written_stands_under_a_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = read(packed(folder))

    def power_cut(path: Path, target: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", power_cut)
    with pytest.raises(KeyboardInterrupt):
        unpack(archive)
    assert not held(folder).keys() & FILES.keys()


def test_an_archive_that_is_cut_or_damaged_anywhere_is_refused_or_gives_what_was_packed(folder: Path) -> None:
    path = Path(packed(folder))
    whole = path.read_bytes()
    cut = [whole[:length] for length in range(len(whole))]
    flipped = [whole[:place] + bytes([byte ^ 64]) + whole[place + 1 :] for place, byte in enumerate(whole)]
    refused = 0
    for damaged in cut + flipped:
        path.write_bytes(damaged)
        try:
            assert read(str(path)) == (MADE_BY, FILES)
        except KernelArchiveError as error:
            refused += str(error).startswith("kernels.tar: ")
    assert refused >= 2 * len(whole) - 32  # what gzip says of the name, of the time and of the system


@pytest.mark.parametrize(
    "contents", ["none", "[]", "{}", '{"made_by": {"level": 3}, "files": {}}', '{"made_by": 1, "files": {}}']
)
def test_contents_that_say_nothing_are_refused(contents: str) -> None:
    with tarfile.open("other.tar", "w:gz") as archive:
        member = tarfile.TarInfo(CONTENTS)
        member.size = len(contents)
        archive.addfile(member, io.BytesIO(contents.encode()))
    with pytest.raises(KernelArchiveError, match=r"^other.tar: expected what `dgrr cache export` wrote, whole, got "):
        read("other.tar")


def archived(*members: tuple[tarfile.TarInfo, bytes], digests: dict[str, str] | None = None) -> str:
    """An archive of these members, as someone else would make it."""
    files = {member.name: sha256(data).hexdigest() for member, data in members} if digests is None else digests
    contents = json.dumps({"made_by": MADE_BY, "files": files}).encode()
    with tarfile.open("other.tar", "w:gz") as archive:
        for member, data in ((tarfile.TarInfo(CONTENTS), contents), *members):
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return "other.tar"


@pytest.mark.parametrize(
    "name",
    ["../add-1.nbc", "/tmp/add-1.nbc", "x86-64-v3/../../add-1.nbc", "a/b/add-1.nbc", "v3/.add-1.nbc", "..", "add.py"],
)
def test_a_name_that_leads_elsewhere_is_refused(folder: Path, name: str) -> None:
    good = (tarfile.TarInfo("v3/add-1.nbc"), b"code")
    with pytest.raises(KernelArchiveError) as caught:
        unpack(read(archived(good, (tarfile.TarInfo(name), b"code"))))
    assert str(caught.value) == (
        f"other.tar: expected names of compiled kernels, such as x86-64-v3/add-….nbc, got {name!r}; "
        "nothing was unpacked"
    )
    assert not folder.exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE])
def test_what_is_no_file_is_refused(folder: Path, kind: bytes) -> None:
    member = tarfile.TarInfo("v3/add-1.nbc")
    member.type, member.linkname = kind, "/etc/passwd"
    with pytest.raises(KernelArchiveError) as caught:
        read(archived((member, b"")))
    assert str(caught.value) == "other.tar: expected files, got 'v3/add-1.nbc', which is none; nothing was unpacked"


def test_a_file_that_is_not_as_it_was_written_is_refused(folder: Path) -> None:
    member = (tarfile.TarInfo("v3/add-1.nbc"), b"code")
    for digests in ({}, {"v3/add-1.nbc": sha256(b"other").hexdigest()}, {"v3/add-1.nbc": 1}):
        with pytest.raises(KernelArchiveError) as caught:
            read(archived(member, digests=digests))  # type: ignore[arg-type]
        expected = "other.tar: v3/add-1.nbc is not as `dgrr cache export` wrote it; export it anew"
        assert str(caught.value) == expected


def test_another_file_is_refused() -> None:
    Path("notes.txt").write_text("no archive")
    with pytest.raises(KernelArchiveError, match=r"^notes.txt: expected what `dgrr cache export` wrote, whole, got "):
        read("notes.txt")
    with tarfile.open("plain.tar", "w:gz") as archive:
        archive.add("notes.txt", "add-1.nbc")
    with pytest.raises(KernelArchiveError, match=r"^plain.tar: expected what `dgrr cache export` wrote, whole, got "):
        read("plain.tar")

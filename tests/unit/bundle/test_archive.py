import io
import stat
import zipfile
from typing import Any

import pytest

from molscore.bundle import archive
from molscore.bundle.archive import MAX_MEMBERS, pack, unpack
from molscore.errors import BundleError

MEMBERS = {"manifest.json": b"{}", "expert.onnx": b"graph", "weights.safetensors": b"w" * 99}


def zip_of(*members: tuple[str | zipfile.ZipInfo, bytes], **options: Any) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", **options) as file:
        for name, data in members:
            file.writestr(name, data)
    return buffer.getvalue()


def info(name: str = "manifest.json", *, mode: int = stat.S_IFREG | 0o644) -> zipfile.ZipInfo:
    result = zipfile.ZipInfo(name)
    result.create_system = 3
    result.external_attr = mode << 16
    return result


def refused(raw: bytes, words: str) -> None:
    with pytest.raises(BundleError, match=words) as caught:
        unpack(raw, where="m.molscore")
    assert str(caught.value).startswith("m.molscore: ")


def test_what_is_packed_comes_back_and_is_a_plain_zip() -> None:
    raw = pack(MEMBERS)
    assert unpack(raw, where="x") == MEMBERS
    with zipfile.ZipFile(io.BytesIO(raw)) as file:
        assert file.testzip() is None
        assert file.namelist() == list(MEMBERS)


def test_the_same_members_give_the_same_bytes() -> None:
    assert pack(MEMBERS) == pack(dict(MEMBERS))


def test_only_members_of_a_bundle_are_packed() -> None:
    with pytest.raises(BundleError, match="does not belong in a bundle"):
        pack({"notes.txt": b""})


@pytest.mark.parametrize("raw", [b"", b"PK", b"smiles,y\nC,1\n", b"\x1f\x8b" + b"0" * 40])
def test_another_kind_of_file_is_named_as_such(raw: bytes) -> None:
    refused(raw, "not a molscore bundle")


@pytest.mark.parametrize(
    "name", ["../manifest.json", "/etc/passwd", "a/../../b", "manifest.json/", "C:\\x", "other"]
)
def test_a_foreign_name_is_refused(name: str) -> None:
    refused(zip_of((name, b"{}")), "unexpected member")


def test_a_name_that_stands_twice_is_refused() -> None:
    with pytest.warns(UserWarning, match="Duplicate name"):
        raw = zip_of(("manifest.json", b"{}"), ("manifest.json", b"{1}"))
    refused(raw, "stands twice")


def test_a_link_is_refused() -> None:
    refused(zip_of((info(mode=stat.S_IFLNK | 0o777), b"/etc/passwd")), "not a regular file")


def test_a_device_is_refused() -> None:
    refused(zip_of((info(mode=stat.S_IFCHR | 0o666), b"")), "not a regular file")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions_are_refused(method: int) -> None:
    refused(zip_of(("manifest.json", b"{}"), compression=method), "compression method")


def test_encryption_is_refused() -> None:
    raw = bytearray(pack(MEMBERS))
    raw[6] |= 1
    at = raw.index(b"PK\x01\x02")
    raw[at + 8] |= 1
    refused(bytes(raw), "zip flags 0x1")


def test_a_bomb_is_refused_before_it_is_inflated(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = zip_of(("expert.onnx", b"\0" * (8 << 20)), compression=zipfile.ZIP_DEFLATED)
    assert len(raw) < 10_000
    monkeypatch.setattr(archive, "_read", None)  # nothing may be read
    refused(raw, "zip bomb")


def test_a_member_beyond_its_limit_is_refused() -> None:
    refused(zip_of(("manifest.json", b"0" * ((8 << 20) + 1))), "more than the 8388608 allowed")


def test_a_size_that_lies_is_refused() -> None:
    raw = bytearray(zip_of(("expert.onnx", b"\0" * (2 << 20)), compression=zipfile.ZIP_DEFLATED))
    for mark, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        at = raw.index(mark)
        raw[at + offset : at + offset + 4] = (100).to_bytes(4, "little")
    refused(bytes(raw), "damaged")


def test_many_members_are_refused_before_the_directory_is_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raw = zip_of(*((f"f{i}", b"") for i in range(MAX_MEMBERS + 1)))
    monkeypatch.setattr(zipfile, "ZipFile", None)
    refused(raw, f"{MAX_MEMBERS + 1} members")


def test_bytes_before_and_behind_are_refused() -> None:
    raw = pack(MEMBERS)
    refused(b"#!/bin/sh\n" + raw, "does not start like a zip")
    refused(raw + b"x", "does not end like a bundle")
    refused(raw[:4] + raw, "directory is not where it should be")


def test_a_comment_is_refused() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("manifest.json", b"{}")
        file.comment = b"hello"
    refused(buffer.getvalue(), "does not end like a bundle")

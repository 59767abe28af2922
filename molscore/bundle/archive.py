"""The zip a bundle is, read under limits that are checked before anything is inflated.

A bundle is written by `pack` and by nothing else, so `unpack` asks for exactly what `pack`
does: stored or deflated members, no encryption, directories, links, comments, extra volumes or
bytes before the first member.
"""

import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import Final

from molscore.errors import BundleError

MAX_FILE: Final = 600 << 20
MAX_MEMBERS: Final = 16
MAX_NAME: Final = 64
MAX_RATIO: Final = 120
RATIO_FREE: Final = 1 << 20  # members up to this size may compress by any ratio
MEMBER_LIMITS: Final[dict[str, int]] = {
    "manifest.json": 8 << 20,
    "expert.onnx": 16 << 20,
    "weights.safetensors": 512 << 20,
    "arrays.safetensors": 64 << 20,
}
_END = struct.Struct("<4s4H2LH")  # end of central directory without a comment
_EPOCH = (1980, 1, 1, 0, 0, 0)


def pack(members: Mapping[str, bytes]) -> bytes:
    """Return a zip of `members`, in their order; the same members give the same bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            limit = MEMBER_LIMITS.get(name)
            if limit is None or len(data) > limit:
                raise BundleError(
                    f"member {name!r} of {len(data)} bytes does not belong in a bundle"
                )
            info = zipfile.ZipInfo(name, _EPOCH)
            info.create_system = 3
            info.external_attr = (stat.S_IFREG | 0o644) << 16
            # Weights are noise to deflate; text and the graph shrink to a fifth.
            tensors = name.endswith(".safetensors")
            info.compress_type = zipfile.ZIP_STORED if tensors else zipfile.ZIP_DEFLATED
            archive.writestr(info, data)
    return buffer.getvalue()


def unpack(raw: bytes, *, where: str) -> dict[str, bytes]:
    """Return the members of a bundle.

    Args:
        raw: the whole file.
        where: what to call it in an error message.

    Raises:
        BundleError: when `raw` is not a zip, is damaged, or is anything but what `pack` writes.
    """
    _check_end(raw, where)
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            infos = archive.infolist()
            _check_infos(infos, where)
            return {info.filename: _read(archive, info, where) for info in infos}
    except BundleError:
        raise
    except (
        zipfile.BadZipFile,
        zlib.error,
        EOFError,
        OSError,
        NotImplementedError,
        RuntimeError,
        ValueError,
        OverflowError,
        KeyError,
        struct.error,
    ) as error:
        raise BundleError(f"{where}: damaged: {error or type(error).__name__}") from None


def _check_end(raw: bytes, where: str) -> None:
    """Check the directory's size from the last record, before `zipfile` walks the directory."""
    if raw[:4] != b"PK\x03\x04":
        raise BundleError(f"{where}: not a molscore bundle (it does not start like a zip file)")
    if len(raw) < _END.size or raw[-_END.size : -_END.size + 4] != b"PK\x05\x06":
        raise BundleError(f"{where}: damaged or truncated: the file does not end like a bundle")
    _, disk, first_disk, here, total, size, offset, comment = _END.unpack(raw[-_END.size :])
    if disk or first_disk or comment or here != total:
        raise BundleError(f"{where}: not a molscore bundle (volumes or comments in the zip)")
    if total > MAX_MEMBERS:
        raise BundleError(f"{where}: {total} members, more than the {MAX_MEMBERS} allowed")
    if offset + size + _END.size != len(raw):
        raise BundleError(f"{where}: damaged: the zip directory is not where it should be")


def _check_infos(infos: list[zipfile.ZipInfo], where: str) -> None:
    names = [info.filename for info in infos]
    if len(set(names)) != len(names):
        raise BundleError(f"{where}: a member name stands twice")
    for info in infos:
        limit = MEMBER_LIMITS.get(info.filename)
        if limit is None:
            shown = info.filename[:MAX_NAME]
            raise BundleError(f"{where}: unexpected member {shown!r}")
        name = f"{where}: {info.filename}"
        if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise BundleError(f"{name}: compression method {info.compress_type} is not allowed")
        if info.flag_bits & ~0x0806:  # UTF-8 name and deflate level only: no encryption, no patch
            raise BundleError(f"{name}: zip flags {info.flag_bits:#x} are not allowed")
        # 0: written by a program that does not say.
        if stat.S_IFMT(info.external_attr >> 16) not in {0, stat.S_IFREG}:
            raise BundleError(f"{name}: not a regular file (link or device)")
        if info.file_size > limit:
            raise BundleError(f"{name}: {info.file_size} bytes, more than the {limit} allowed")
        if info.file_size > max(RATIO_FREE, MAX_RATIO * info.compress_size):
            raise BundleError(f"{name}: compressed by more than {MAX_RATIO}:1 (zip bomb?)")


def _read(archive: zipfile.ZipFile, info: zipfile.ZipInfo, where: str) -> bytes:
    with archive.open(info) as member:
        data = member.read(info.file_size + 1)
    if len(data) != info.file_size:
        raise BundleError(
            f"{where}: {info.filename}: {len(data)} bytes, the directory says {info.file_size}"
        )
    return data

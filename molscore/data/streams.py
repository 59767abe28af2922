"""Bytes in: files and stdin, gzip by its magic bytes, encodings, and a bounded look ahead."""

import codecs
import contextlib
import gzip
import io
import os
import re
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, cast

from molscore.data.prefixed import HEAD_BYTES, read_head
from molscore.errors import InputError

_REFUSED: Final = (
    (b"BZh", "compressed with bzip2"),
    (b"\xfd7zXZ\x00", "compressed with xz"),
    (b"\x28\xb5\x2f\xfd", "compressed with zstd"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (b"\x1f\x8b", "compressed with gzip twice"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Excel workbook (.xls)"),
    (b"%PDF-", "a PDF"),
    (b"\x89PNG", "a picture"),
    (b"\xff\xd8\xff", "a picture"),
    (b"\x7fELF", "a program"),
)
# Text of other kinds, at its first character; no SMILES and no column name begins so.
_REFUSED_TEXT: Final = (
    (re.compile(rb"\{\s*[\"}]|\[\s*[\"\[{]"), "JSON"),
    (re.compile(rb"<(!doctype|html|\?xml|!--)", re.IGNORECASE), "a web page or XML"),
    (re.compile(rb"version https://git-lfs"), "a Git LFS pointer, not the file it stands for"),
)
_BOMS: Final = (
    # UTF-32 first: its little-endian mark begins with that of UTF-16.
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CONTROL: Final = bytes({*range(0x20), 0x7F} - {0x09, 0x0A, 0x0B, 0x0C, 0x0D})
_FALLBACK: Final = "molscore-cp1252"


def _decode_as_cp1252(error: UnicodeError) -> tuple[str, int]:
    """Codec error handler: read the bytes that are not UTF-8 as cp1252, else as Latin-1."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    text = "".join(
        bytes([byte]).decode("cp1252" if byte not in _NOT_CP1252 else "latin-1")
        for byte in error.object[error.start : error.end]
    )
    return text, error.end


_NOT_CP1252: Final = frozenset({0x81, 0x8D, 0x8F, 0x90, 0x9D})
codecs.register_error(_FALLBACK, _decode_as_cp1252)


@dataclass
class ByteSource:
    """An opened table before its format is known.

    Attributes:
        name: for messages.
        path: None for stdin.
        head: the first bytes, decompressed; all of them where `complete`.
        complete: whether `head` is the whole content.
        stream: the whole content, decompressed, from the start.
        compression: "gzip" or None.
        close: closes what is open (stdin stays open).
        share_read: returns how much of the file has been taken from `stream`, from 0 to 1; None
            where its size is not known (a pipe).
    """

    name: str
    path: Path | None
    head: bytes
    complete: bool
    stream: IO[bytes]
    compression: str | None
    close: Callable[[], None]
    share_read: Callable[[], float | None]


def open_source(path: str | Path) -> ByteSource:
    """Open a file, or stdin for "-", and look at its head.

    Raises:
        InputError: if it is missing, a folder, not readable, empty, or of a kind that no
            reader takes.
    """
    if str(path) == "-":
        name, file, raw = "stdin", None, _stdin()
        close: Callable[[], None] = _keep_open
    else:
        name, file = str(path), Path(path)
        raw = _open_file(file)
        close = raw.close
    try:
        return _look(name, file, raw, close)
    except BaseException:
        close()
        raise


def _look(
    name: str, path: Path | None, raw: io.BufferedIOBase, close: Callable[[], None]
) -> ByteSource:
    with reading(name):
        head, whole, complete = read_head(raw)
        stream: IO[bytes] = io.BufferedReader(whole, HEAD_BYTES)
        compression, packed, unpacked = None, stream, None
        if head.startswith(b"\x1f\x8b"):
            compression = "gzip"
            unpacked = gzip.GzipFile(fileobj=stream, mode="rb")
            head, whole, complete = read_head(unpacked)
            stream = io.BufferedReader(whole, HEAD_BYTES)
    for magic, what in _REFUSED:
        if head.startswith(magic):
            raise InputError(f"{name} is {what}, which molscore does not read")
    start = head[:1024].removeprefix(codecs.BOM_UTF8).lstrip()
    for pattern, what in _REFUSED_TEXT:
        if pattern.match(start):
            raise InputError(f"{name} is {what}, which molscore does not read")
    if not head:
        inside = " once unpacked" if compression else ""
        raise InputError(f"{name} is empty{inside}")
    size = _file_size(raw)

    def share_read() -> float | None:
        if not size:
            return None
        share = packed.tell() / size
        if unpacked is not None:
            # Of what is unpacked, a part waits in buffers.
            share *= stream.tell() / max(1, unpacked.tell())
        return min(1.0, share)

    return ByteSource(name, path, head, complete, stream, compression, close, share_read)


def _file_size(raw: io.BufferedIOBase) -> int | None:
    """Return the bytes of a plain file; None for a pipe or a terminal."""
    try:
        status = os.fstat(raw.fileno())
    except (OSError, ValueError):  # a stand-in for stdin
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def seekable(source: ByteSource) -> IO[bytes]:
    """Open a source for reading in any order; all but plain files are held in memory."""
    if source.path is not None and source.path.is_file() and source.compression is None:
        return _open_file(source.path)
    with reading(source.name):
        return io.BytesIO(source.stream.read())


def _stdin() -> io.BufferedIOBase:
    if sys.stdin is None or sys.stdin.closed:
        raise InputError("stdin is closed: nothing to read")
    with contextlib.suppress(OSError, ValueError, AttributeError):  # no descriptor, or Windows
        # Where whoever started us left it so, "nothing yet" would look like the end.
        os.set_blocking(sys.stdin.fileno(), True)
    return cast(io.BufferedIOBase, sys.stdin.buffer)


def _keep_open() -> None:
    """Leave stdin open: it is not ours."""


def _open_file(path: Path) -> io.BufferedReader:
    if path.is_dir():
        raise InputError(f"{path} is a folder, not a table")
    try:
        return path.open("rb")
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be opened: {_reason(error)}") from None


READ_ERRORS: Final = (EOFError, zlib.error, gzip.BadGzipFile, UnicodeError, OSError)


def read_error(name: str, error: Exception) -> InputError:
    """Say in words what went wrong while bytes were read or decoded."""
    if isinstance(error, EOFError | zlib.error | gzip.BadGzipFile):
        return InputError(f"{name}: damaged or cut gzip data ({error})")
    if isinstance(error, UnicodeError):
        encoding = getattr(error, "encoding", "?")
        return InputError(
            f"{name}: not valid text in the encoding {encoding} ({error}); --encoding names another"
        )
    return InputError(f"{name} cannot be read: {_reason(error)}")


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Turn what can go wrong while bytes are read or decoded into an `InputError`."""
    try:
        yield
    except READ_ERRORS as error:
        raise read_error(name, error) from None


def _reason(error: Exception) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


@dataclass
class TextSource:
    """A text table: a look at its first lines, then all of it.

    Attributes:
        head: decoded text of the first lines; whole lines unless there is only part of one.
        encoding: as in `TableInfo`.
        stream: all of the text, byte order mark removed, line ends as they are.
    """

    head: str
    encoding: str
    stream: io.TextIOWrapper


def as_text(source: ByteSource, encoding: str | None) -> TextSource:
    """Decode a byte source.

    Args:
        source: what `open_source` gave.
        encoding: as in `TableOptions`.

    Raises:
        InputError: if the content is binary, or does not fit the encoding that was given.
    """
    chosen = encoding or _detect(source)
    errors = "strict" if encoding or chosen not in {"utf-8", "utf-8-sig", "cp1252"} else _FALLBACK
    if chosen == "utf-8":
        chosen = "utf-8-sig" if source.head.startswith(codecs.BOM_UTF8) else "utf-8"
    with reading(source.name):
        decoder = codecs.getincrementaldecoder(chosen)(errors)
        head = decoder.decode(source.head, source.complete)
    if not source.complete:
        end = max(head.rfind("\n"), head[:-1].rfind("\r"))
        head = head[: end + 1] or head
    stream = io.TextIOWrapper(source.stream, encoding=chosen, errors=errors, newline="")
    return TextSource(head, chosen, stream)


def _detect(source: ByteSource) -> str:
    """Find the encoding of a head of bytes, see `TableOptions.encoding`."""
    head = source.head
    for bom, encoding in _BOMS:
        if head.startswith(bom):
            return encoding
    # UTF-16 without a mark: mostly ASCII, so every other byte is NUL.
    even, odd = head[0::2].count(0), head[1::2].count(0)
    half = max(len(head) // 2, 1)
    if max(even, odd) > 0.4 * half and min(even, odd) < 0.05 * half:
        return "utf-16-le" if odd > even else "utf-16-be"
    n_control = len(head) - len(head.translate(None, _CONTROL))
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head, source.complete)
    except UnicodeDecodeError:
        is_utf8 = False
    else:
        is_utf8 = True
    # A stray control character happens in real tables; a share of them is something else.
    if n_control > max(3, 0.05 * len(head)) or (not is_utf8 and n_control > 0.01 * len(head)):
        raise InputError(
            f"{source.name} is binary data, not a table "
            "(csv, tsv, smi, xlsx, sdf, parquet; text may be gzipped)"
        )
    return "utf-8" if is_utf8 else "cp1252"

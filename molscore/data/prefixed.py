"""A byte stream of which the first bytes have been looked at."""

import io
from typing import Final

HEAD_BYTES: Final = 1 << 18
HEAD_LINES: Final = 256
"""Detection looks at so many bytes or lines, whichever ends first, of a pipe as of a file."""


def read_head(raw: io.BufferedIOBase) -> tuple[bytes, "Prefixed", bool]:
    """Take the head of a stream, without waiting for more than that.

    Returns:
        The head, the stream from its start again, and whether the head is all of it.
    """
    parts: list[bytes] = []
    n_bytes = n_lines = 0
    ended = False
    while n_bytes < HEAD_BYTES and n_lines < HEAD_LINES:
        # What is there, rather than all that was asked for: a slow pipe is not waited for.
        part = raw.read1(HEAD_BYTES - n_bytes)
        if not part:
            ended = True
            break
        parts.append(part)
        n_bytes += len(part)
        n_lines += part.count(b"\n")
    taken = b"".join(parts)
    lines = taken.split(b"\n", HEAD_LINES)
    head = taken[: len(taken) - len(lines[-1])] if len(lines) > HEAD_LINES else taken
    return head, Prefixed(taken, raw, ended=ended), ended and len(head) == len(taken)


class Prefixed(io.RawIOBase):
    """A byte stream with the bytes that were looked at put back in front."""

    def __init__(self, head: bytes, rest: io.BufferedIOBase, *, ended: bool) -> None:
        self._position = 0
        self._head = memoryview(head)
        self._rest = rest
        # An end is not asked for twice: on a terminal the user would have to type Ctrl-D again.
        self._ended = ended

    def readable(self) -> bool:
        """Whether bytes can be read: always."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill a buffer, as far as bytes are there."""
        if not len(buffer):
            return 0
        data: bytes | memoryview = self._head[: len(buffer)]
        if data:
            self._head = self._head[len(data) :]
        elif not self._ended:
            # What is there, rather than a full buffer: a slow pipe is passed on as it comes.
            data = self._rest.read1(len(buffer))
            self._ended = not data
        buffer[: len(data)] = data
        self._position += len(data)
        return len(data)

    def tell(self) -> int:
        """Return the number of bytes read so far."""
        return self._position

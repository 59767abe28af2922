"""A byte stream of which the first bytes have been looked at."""

import io
from typing import Final

# Detection looks at this many bytes at most, of stdin too.
HEAD_BYTES: Final = 1 << 18


class Prefixed(io.RawIOBase):
    """A byte stream with the bytes that were looked at put back in front."""

    def __init__(self, head: bytes, rest: io.BufferedIOBase) -> None:
        self._position = 0
        self._head = memoryview(head)
        self._rest = rest
        # A short head is the whole stream. An end is not asked for twice: on a terminal the
        # user would have to type Ctrl-D again.
        self._ended = len(head) < HEAD_BYTES

    def readable(self) -> bool:
        """Whether bytes can be read: always."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill a buffer, as far as bytes are there."""
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

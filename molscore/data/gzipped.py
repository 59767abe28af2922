"""Bytes out, gzipped, so that they can be continued where an earlier run stopped."""

import gzip
from typing import Any, Final, cast

from molscore.data.outputs import Output

MEMBER_BYTES: Final = 1 << 18
"""A gzip member ends behind this many bytes of text. The window of deflate is 32 KiB, so that
ending it costs one or two percent of the size."""


class GzipOutput:
    """An `Output` behind gzip: members one after another, which any gzip reads as one text.

    A member cannot be gone on with once its writer is gone, so members are ended now and then.
    There is no time stamp in them: equal tables are equal files.

    Args:
        output: where the packed bytes go; if something stands there, members follow it.
    """

    def __init__(self, output: Output) -> None:
        self._output = output
        self._member: gzip.GzipFile | None = None
        self._n_bytes = 0
        if not output.continued:
            self._begin_member()  # a text without a byte has a member too

    @property
    def continued(self) -> bool:
        """Whether bytes of another run stand before ours."""
        return self._output.continued

    @property
    def whole(self) -> bool:
        """Whether the last member has ended."""
        return self._member is None

    def write(self, data: bytes) -> int:
        """Write bytes of the text."""
        member = self._member or self._begin_member()
        self._n_bytes += len(data)
        return member.write(data)

    def flush(self) -> None:
        """End a member that is long enough; flushing each block would spoil the compression."""
        if self._n_bytes >= MEMBER_BYTES:
            self._end_member()
            self._output.flush()

    def discard(self) -> None:
        """Drop what was written."""
        self._output.discard()

    def commit(self) -> None:
        """Finish, and put the file in its place."""
        try:
            self._end_member()
        except BaseException:
            self._output.discard()
            raise
        self._output.commit()

    def _begin_member(self) -> gzip.GzipFile:
        self._n_bytes = 0
        self._member = gzip.GzipFile(
            filename="", fileobj=cast(Any, self._output), mode="wb", mtime=0
        )
        return self._member

    def _end_member(self) -> None:
        if self._member is not None:
            self._member.close()
            self._member = None
            self._n_bytes = 0

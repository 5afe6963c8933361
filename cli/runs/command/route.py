"""Copies bytes between two descriptors without blocking on either, and without changing their flags.

The descriptors of a terminal or pipe are shared with other processes, which do not expect them to become non-blocking.
"""

import errno
import fcntl
import os
import select
import sys
from collections.abc import Container, Iterator

CHUNK_BYTES = 1 << 16
# If poll reports a terminal as writable, this many bytes can be written without blocking; for a pipe, PIPE_BUF bytes.
TERMINAL_CHUNK_BYTES = 1024
# A pseudoterminal's buffers hold fewer bytes than this.
TERMINAL_BYTES = 1 << 17


class Route:
    """Data that is read from `source`, kept in `pending`, and written to `target`.

    capacity_bytes  nothing more is read while at least this many bytes are pending.
    source          -1 after its end.
    error           why writing to the target failed; None if it did not. After an error, all data is discarded.
    """

    def __init__(self, source: int, target: int, capacity_bytes: int = 1) -> None:
        self.source = source
        self.pending = bytearray()
        self.error: OSError | None = None
        self.target = target
        self._capacity_bytes = capacity_bytes
        self._chunk_bytes = TERMINAL_CHUNK_BYTES if os.isatty(target) else select.PIPE_BUF
        self._remaining_bytes = sys.maxsize

    def awaited(self) -> Iterator[tuple[int, int]]:
        """Yield the descriptors and events to wait for."""
        if self.source >= 0 and len(self.pending) < self._capacity_bytes:
            yield self.source, select.POLLIN
        if self.pending:
            yield self.target, select.POLLOUT

    def read(self, ready: Container[int]) -> bytes:
        """Return the data available from the source, if poll has reported it as ready."""
        if self.source not in ready or len(self.pending) >= self._capacity_bytes:
            return b""
        try:
            data = os.read(self.source, min(CHUNK_BYTES, self._remaining_bytes))
        except BlockingIOError:
            return b""
        except OSError as error:
            # A terminal reports the end of its data as an error.
            if error.errno != errno.EIO:
                raise
            data = b""
        self._remaining_bytes -= len(data)
        if not data or not self._remaining_bytes:
            self.source = -1
        return data

    def add(self, data: bytes) -> None:
        """Append data to be written."""
        if self.error is None:
            self.pending += data

    def write(self, ready: Container[int]) -> None:
        """Write pending data, if poll has reported the target as ready."""
        if not self.pending or self.target not in ready:
            return
        try:
            written = os.write(self.target, self.pending[: self._chunk_bytes])
        except BlockingIOError:
            return
        except OSError as error:
            self.error = error
            self.pending.clear()
        else:
            del self.pending[:written]

    def end(self) -> None:
        """Read no more than the source can contain now, in case other processes go on writing to it."""
        if self.source < 0:
            return
        try:
            self._remaining_bytes = fcntl.fcntl(self.source, fcntl.F_GETPIPE_SZ)
        except OSError:
            self._remaining_bytes = TERMINAL_BYTES

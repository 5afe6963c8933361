"""What a module in `formats` defines: NAME, `recognises` and `read`. Each module reads one format.

A module also defines `growing` if its format can be read while a load generator writes it.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from collector.clients.client_result import ClientResult, Operation

HEAD_BYTES = 1 << 16
"""The number of bytes at the beginning of a file from which its format is recognised."""


class ClientFormatError(ValueError):
    """A file is not a readable result; the message is one line without the path."""


@dataclass(frozen=True)
class CommandTimes:
    """When the load generator was started and when it ended, in seconds since the epoch on the run's clock.

    words  the command and its arguments; none if they are unknown.
    """

    begin_s: float
    end_s: float
    words: tuple[str, ...] = ()


class ClientFormat(Protocol):
    """A module that reads one format."""

    NAME: str

    def recognises(self, head: str) -> bool:
        """Return whether a file that begins with the text `head` (at most HEAD_BYTES of it) is in this format."""

    def read(self, path: Path, times: CommandTimes) -> ClientResult:
        """Read a file. `times` places a result without times of day. Raises ClientFormatError and OSError."""


class GrowingResult(Protocol):
    """A result that is being written, read in parts. Memory does not grow with the file."""

    problem: str
    """Why the first malformed line is malformed; "" if there is none."""

    def add(self, data: bytes) -> int:
        """Add the next bytes, and return the number of malformed lines, which are skipped.

        An incomplete last line is kept until its end is added.
        """

    def take(self) -> tuple[Operation, ...]:
        """Return the operations added since the last call, each with its total and no intervals."""


class GrowingFormat(ClientFormat, Protocol):
    """A format that can be read while a load generator writes it."""

    def growing(self, head: bytes) -> GrowingResult:
        """Return a reader for a file that begins with `head`, without a byte order mark. Raises ClientFormatError."""

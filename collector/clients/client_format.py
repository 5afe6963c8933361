"""What a module in `formats` defines: NAME, `recognises` and `read`. Each module reads one format.

A module also defines `growing` if its format can be read while a load generator writes it, and OPTIONS if a user can
state what its files do not.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from collector.clients.client_result import ClientResult, Operation
from collector.printable import one_line

HEAD_BYTES = 1 << 16
"""The number of bytes at the beginning of a file from which its format is recognised."""


class ClientFormatError(ValueError):
    """A file is not a readable result; the message is one line without the path."""


MALFORMED = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""What a format raises if a file is malformed; the last ones if a field has another type or an impossible value."""
_REASONS: tuple[tuple[type[Exception], str], ...] = (
    (KeyError, "a field is missing: {}"),
    (TypeError, "a field has the wrong type"),
    (AttributeError, "a field has the wrong type"),
    (OverflowError, "a number is too large"),
    (ZeroDivisionError, "a number is 0"),
    (RecursionError, "nested too deeply"),
)


def reason_of(error: Exception) -> str:
    """Return in one line why a file is malformed, given one of the exceptions MALFORMED."""
    template = next((text for kind, text in _REASONS if isinstance(error, kind)), "{}")
    return template.format(one_line(error))


class UnknownFormatError(ClientFormatError):
    """A file is not recognised as a result."""


class AmbiguousFormatError(ClientFormatError):
    """A file has results in several formats, or of several containers."""


@dataclass(frozen=True)
class CommandTimes:
    """When the load generator was started and when it ended, in seconds since the epoch on the run's clock.

    words  the command and its arguments; none if they are unknown.
    """

    begin_s: float
    end_s: float
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class FormatChoice:
    """What a user states about a file.

    format   the name of its format; "" if the content determines it.
    options  the values of the format's options, such as {"unit": "us"}; see `FormatWithOptions`.
    """

    format: str = ""
    options: Mapping[str, str] = field(default_factory=dict)


class ClientFormat(Protocol):
    """A module that reads one format."""

    NAME: str

    def recognises(self, head: str) -> bool:
        """Return whether a file that begins with the text `head` (at most HEAD_BYTES of it) is in this format."""

    def read(self, path: Path, times: CommandTimes) -> ClientResult:
        """Read a file. `times` places a result without times of day.

        Raises OSError, and one of MALFORMED if the file is malformed.
        """


class FormatWithOptions(ClientFormat, Protocol):
    """A format with options, by which a user states what its files do not: `FORMAT,OPTION=VALUE:FILE`."""

    OPTIONS: Mapping[str, tuple[str, ...]]
    """The values that each option accepts; () if it accepts any text without commas and colons."""

    def read(self, path: Path, times: CommandTimes, options: Mapping[str, str] | None = None) -> ClientResult:
        """Read a file as `ClientFormat.read` does; `options` has only names and values that OPTIONS accepts."""


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

    @property
    def growing(self) -> Callable[..., GrowingResult]:
        """A function that returns a reader for a file, and raises ClientFormatError.

        Its arguments are the file's beginning, without a byte order mark, and, if the format has options, those given.
        """

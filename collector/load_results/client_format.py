"""What a module in `formats` defines: FORMATS, a `Format` for each format that it reads."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Protocol

from collector.load_results.client_result import ClientResult, Operation, StatedTotals
from collector.merge.clock_correction import ClockPart
from collector.printable import one_line


class ClientFormatError(ValueError):
    """A file is not a readable result; the message is one line without the path."""


MALFORMED = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""What a format raises if a file is malformed; the last ones if a field has another type or an impossible value."""
_REASONS: tuple[tuple[type[Exception] | tuple[type[Exception], ...], str], ...] = (
    (KeyError, "a field is missing: {}"),
    ((TypeError, AttributeError), "a field has the wrong type"),
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
    clock  the periods between the changes of this machine's clock; () if it agrees with the run's.
    """

    begin_s: float
    end_s: float
    words: tuple[str, ...] = ()
    clock: tuple[ClockPart, ...] = ()


class ResultClock(Enum):
    """How the times and lengths in a result depend on the wall clock, if that is set while the load generator runs."""

    SHOWN = "each time is read from the clock"
    STEADY = "only the begin is read from the clock; times since then are not affected if it is set"
    EITHER = "one of these, which depends on the load generator"
    DELAYED = "times follow the clock with a delay, or their order matters"


@dataclass(frozen=True)
class FormatChoice:
    """What a user states about a file.

    format   the name of its format; "" if the content determines it.
    options  the values of the format's options, such as {"unit": "us"}; see `Format`.
    """

    format: str = ""
    options: Mapping[str, str] = field(default_factory=dict)


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


@dataclass(frozen=True)
class SourceFile:
    """A file that is read in a format.

    format   the name of the format.
    times    when the command ran, which places a result without times of day.
    options  what a user states about the file, such as {"unit": "us"}; some of `Format.options`.
    """

    format: str
    path: Path
    times: CommandTimes
    options: Mapping[str, str] = field(default_factory=dict)

    def result(
        self,
        tool: str,
        operations: Iterable[Operation],
        notes: Iterable[str] = (),
        stated: Iterable[StatedTotals] = (),
        *,
        estimated_clock: bool = False,
    ) -> ClientResult:
        return ClientResult(
            self.format, tool, self.path.name, tuple(operations), estimated_clock, tuple(notes), stated=tuple(stated)
        )


@dataclass(frozen=True)
class Format:
    """A format of client results.

    name            its name, as users state it.
    recognises      returns a true value if a text of at most HEAD_BYTES is the beginning of a file in this format. The
                    text has no terminal escapes, and its lines end with a line feed only.
    read            reads a file. Raises OSError, and one of MALFORMED if the file is malformed.
    growing         returns a reader for a file that is being written, and raises ClientFormatError. Its arguments are
                    the file's beginning, without a byte order mark, and options. None if only whole files are read.
    options         the options by which a user states what files do not (`FORMAT,OPTION=VALUE:FILE`), and the values
                    that each accepts; () if it accepts any text without commas and colons.
    follows_output  whether the result may follow other lines, such as a command's output.
    clock           how its times depend on the clock of the machine.
    """

    name: str
    recognises: Callable[[str], object]
    read: Callable[[SourceFile], ClientResult]
    growing: Callable[[bytes, Mapping[str, str]], GrowingResult] | None = None
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    follows_output: bool = False
    clock: ResultClock = ResultClock.SHOWN

"""Parses log lines according to the logback pattern that they were written with."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from collector.node.log.java_dates import DateFormat
from collector.node.log.logback_parts import DATE, MESSAGE, NEWLINE, THREAD, Piece, pieces_of
from collector.printable import one_line

DEFAULT_PATTERN = "%-5level [%thread] %date{ISO8601} %F:%L - %msg%n"
"""Cassandra's default pattern from 3.11 to 5.0."""


class Line(NamedTuple):
    """The parts of a log line; those that the pattern does not contain are empty."""

    thread: str
    date: str
    message: str


@dataclass(frozen=True)
class LogPattern:
    """Parses the lines that logback writes with one pattern."""

    text: str
    _expression: re.Pattern[str]
    _dates: DateFormat | None

    def line(self, text: str) -> Line | None:
        """Return the parts of a line (without its end), or None if it does not match, as in a stack trace."""
        match = self._expression.match(text)
        if match is None:
            return None
        parts = match.groupdict("")
        return Line(*(parts.get(name, "").strip() for name in Line._fields))

    def time_s(self, line: Line, now_s: float) -> float | None:
        """Return the line's time in seconds since the epoch, or None if its date cannot be parsed.

        `now_s` resolves the ambiguous hour at the end of daylight saving time.
        """
        return self._dates.seconds(line.date, now_s) if self._dates and line.date else None


def parse(pattern: str) -> LogPattern:
    """Return a parser for the lines that logback writes with `pattern`. Raises ValueError with a one-line message."""
    try:
        head, tail = _around_message(pieces_of(pattern))
        expression = re.compile(_head(head) + _tail(tail), re.DOTALL)
    except ValueError as error:
        raise ValueError(f"log pattern '{one_line(pattern)}': {error}") from None
    dates = next((piece.dates for piece in head if piece.kind == DATE), None)
    return LogPattern(pattern, expression, dates)


def _around_message(pieces: Sequence[Piece]) -> tuple[Sequence[Piece], Sequence[Piece]]:
    """Return the pieces before the message and those after it on its line. Raises ValueError."""
    kinds = [piece.kind for piece in pieces]
    if kinds.count(MESSAGE) != 1:
        raise ValueError(f"{'more than one' if MESSAGE in kinds else 'no'} %msg; exactly one is required")
    index = kinds.index(MESSAGE)
    if NEWLINE in kinds[:index]:
        raise ValueError("%n before %msg: the message must be on the first line")
    end = kinds.index(NEWLINE, index) if NEWLINE in kinds[index:] else len(pieces)
    return pieces[:index], pieces[index + 1 : end]


def _head(pieces: Sequence[Piece]) -> str:
    """Return the regular expression for the pieces before the message. Raises ValueError.

    A free-form piece ends where the pieces after it first match. Lookahead groups make that choice final, so that no
    line can cause exponential backtracking.
    """
    last = next((piece for piece in reversed(pieces) if not piece.blank), None)
    if last is not None and last.free:
        raise ValueError(f"no text between {last.word} and %msg: the start of the message is ambiguous")
    names: set[str] = set()
    parts = [""]
    for piece in pieces:
        if piece.free:
            parts.append("")
        expression, name = piece.expression, piece.kind
        if name in (THREAD, DATE) and name not in names:
            expression = f"(?P<{name}>{expression})"
            names.add(name)
        parts[-1] += expression
    ahead = (f"(?=(?P<part{number}>{part}))(?P=part{number})" for number, part in enumerate(parts) if number)
    return parts[0] + "".join(ahead)


def _tail(pieces: Sequence[Piece]) -> str:
    """Return the regular expression for the message and the pieces after it. Raises ValueError."""
    for piece in pieces:
        if piece.free:
            raise ValueError(f"{piece.word} after %msg: the end of the message is ambiguous")
    after = "".join(piece.expression for piece in pieces)
    return rf"(?P<{MESSAGE}>.*){after}\Z" if after else f"(?P<{MESSAGE}>.*)"

"""logback's patterns: what a line of the log was written with takes it apart again."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from collector.log.java_dates import DateFormat
from collector.log.logback_parts import DATE, LEVEL, MESSAGE, NEWLINE, THREAD, Piece, pieces_of
from collector.printable import one_line

DEFAULT_PATTERN = "%-5level [%thread] %date{ISO8601} %F:%L - %msg%n"
"""Cassandra's own, from 3.11 to 5.0."""


class Line(NamedTuple):
    """A line of the log, taken apart. What the pattern does not write is empty."""

    level: str
    thread: str
    date: str
    message: str


@dataclass(frozen=True)
class LogPattern:
    """A logback pattern that takes lines apart."""

    text: str
    _expression: re.Pattern[str]
    _dates: DateFormat | None

    def line(self, text: str) -> Line | None:
        """Return the parts of a line (without its end); None for one that goes on, as in a stack trace."""
        found = self._expression.match(text)
        if found is None:
            return None
        part = found.groupdict("")
        return Line(*(part.get(name, "").strip() for name in Line._fields))

    def time_s(self, line: Line, now_s: float) -> float | None:
        """Return when the line was written, in seconds since the epoch; None when its date is not understood.

        `now_s` tells apart the two hours of the same name when summer time ends.
        """
        return self._dates.seconds(line.date, now_s) if self._dates and line.date else None


def parse(pattern: str) -> LogPattern:
    """Return what takes apart the lines that logback writes with `pattern`. Raises ValueError, with one line."""
    try:
        head, tail = _around_message(pieces_of(pattern))
        expression = re.compile(_head(head) + _tail(tail), re.DOTALL)
    except ValueError as error:
        raise ValueError(f"log pattern '{one_line(pattern)}': {error}") from None
    dates = next((piece.dates for piece in head if piece.kind == DATE), None)
    return LogPattern(pattern, expression, dates)


def _around_message(pieces: Sequence[Piece]) -> tuple[Sequence[Piece], Sequence[Piece]]:
    """Return what stands before the message and what after it, in the same line. Raises ValueError."""
    kinds = [piece.kind for piece in pieces]
    if kinds.count(MESSAGE) != 1:
        raise ValueError(f"{'more than one' if MESSAGE in kinds else 'no'} %msg, the message that is looked into")
    place = kinds.index(MESSAGE)
    if NEWLINE in kinds[:place]:
        raise ValueError("a line ends before %msg: it is to stand in the same line as what comes before it")
    end = kinds.index(NEWLINE, place) if NEWLINE in kinds[place:] else len(pieces)
    return pieces[:place], pieces[place + 1 : end]


def _head(pieces: Sequence[Piece]) -> str:
    """Return the regular expression for what stands before the message. Raises ValueError.

    Something free ends where what follows it in the pattern first fits. That is never tried again elsewhere (a group
    found by looking ahead is not), so that no line makes the search take long.
    """
    last = next((piece for piece in reversed(pieces) if not piece.blank), None)
    if last is not None and last.free:
        raise ValueError(f"nothing stands between {last.word} and %msg: the message cannot be told apart")
    names: set[str] = set()
    parts = [""]
    for piece in pieces:
        if piece.free:
            parts.append("")
        expression, name = piece.expression, piece.kind
        if name in (LEVEL, THREAD, DATE) and name not in names:
            expression = f"(?P<{name}>{expression})"
            names.add(name)
        parts[-1] += expression
    ahead = (f"(?=(?P<part{number}>{part}))(?P=part{number})" for number, part in enumerate(parts) if number)
    return parts[0] + "".join(ahead)


def _tail(pieces: Sequence[Piece]) -> str:
    """Return the regular expression for the message and what stands after it. Raises ValueError."""
    for piece in pieces:
        if piece.free:
            raise ValueError(f"{piece.word} stands after %msg: the message cannot be told apart")
    after = "".join(piece.expression for piece in pieces)
    return rf"(?P<{MESSAGE}>.*){after}\Z" if after else f"(?P<{MESSAGE}>.*)"

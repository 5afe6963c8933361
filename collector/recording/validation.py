"""Validates the content of records, which may be malformed even if the checksum is valid."""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from sys import float_info
from typing import Any

from collector.model.metric import Series
from collector.model.snapshot import TIME_UNITS_PER_S, Event, Tick

# The maximum number of buckets; no Cassandra histogram has that many.
MAX_BUCKETS = 4096
# The maximum absolute value; larger integers cannot be converted to floating point.
MAX_NUMBER = float_info.max
MAX_COUNT = 1 << 63
MAX_TIME_S = 1e11


class CodingError(ValueError):
    """A record is malformed or inconsistent with the records before it."""


# The errors that malformed content causes, including CodingError and LineError, which are ValueErrors.
MALFORMED = (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError)


def tick_of(line: Mapping[str, Any]) -> Tick:
    """Return a record's tick. Raises one of the errors in MALFORMED."""
    tick = Tick(line["t"], line["l"] / TIME_UNITS_PER_S, line.get("m", 0), line.get("z", 0) / TIME_UNITS_PER_S)
    if not 0 <= tick.time_s <= MAX_TIME_S or not 0 <= tick.missed < MAX_COUNT:
        raise CodingError("time or number of missed ticks out of range")
    if not 0 <= tick.late_s <= MAX_NUMBER or not 0 <= tick.suspended_s <= MAX_NUMBER:
        raise CodingError("tick delay or suspended time out of range")
    return tick


def problems_of(line: Mapping[str, Any], sources: int) -> dict[int, str]:
    """Return a record's problems by source index. Raises one of the errors in MALFORMED."""
    problems = dict(line.get("p", ()))
    if not all(0 <= index < sources and isinstance(text, str) for index, text in problems.items()):
        raise CodingError("malformed entry in the list of problems")
    return problems


def events_of(line: Mapping[str, Any], sources: int) -> list[list[Event]]:
    """Return a record's events for each source. Raises one of the errors in MALFORMED."""
    events: list[list[Event]] = [[] for _ in range(sources)]
    for index, *row in line.get("e", ()):
        event = Event(*row)
        texts_of([event.kind, event.text])
        if index < 0:
            raise CodingError("event without a source")
        if event.time_s is not None and not 0 <= event.time_s <= MAX_TIME_S:
            # A log line may have an impossible timestamp; keep the event without it.
            event = replace(event, time_s=None)
        events[index].append(event)
    return events


def texts_of(items: Iterable[Any]) -> list[str]:
    """Return the items as a list. Raises CodingError unless all of them are strings."""
    texts = list(items)
    if not all(isinstance(value, str) for value in texts):
        raise CodingError("name that is not text")
    return texts


def sources_of(items: Iterable[Any]) -> list[str]:
    """Return a record's sources. Raises CodingError for duplicates and names that are not strings."""
    sources = texts_of(items)
    if len(set(sources)) < len(sources):
        raise CodingError("duplicate source")
    return sources


def scalar(value: Any) -> int | float | str:
    """Return the value itself. Raises CodingError unless it is a string or a finite number."""
    if type(value) is str or (type(value) in (int, float) and -MAX_NUMBER <= value <= MAX_NUMBER):
        return value  # type: ignore[no-any-return]
    raise CodingError(f"invalid value {str(value)[:40]}")


def series_of(items: Iterable[Sequence[Any]]) -> list[tuple[str, Series]]:
    """Return a record's new series. Raises one of the errors in MALFORMED."""
    return [(source, (name, *labels)) for source, name, *labels in map(texts_of, items)]


def series_numbers(distances: Iterable[int]) -> list[int]:
    """Decode series numbers from their differences. Raises CodingError if the numbers are not in ascending order."""
    numbers: list[int] = []
    number = 0
    for distance in array("q", distances):
        if distance < 0 or (distance == 0 and numbers):
            raise CodingError("series numbers not in ascending order")
        number += distance
        numbers.append(number)
    return numbers

"""What a line may hold: whatever somebody has written there, with a checksum that fits, it is that or an error."""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from sys import float_info
from typing import Any

from collector.model.metric import Series
from collector.model.snapshot import TIME_UNITS_PER_S, Event, Tick

# More than any of Cassandra's histograms has.
MOST_BUCKETS = 4096
# What is larger is nonsense, and would overflow where it is added up.
LARGEST = float_info.max
LARGEST_COUNT = 1 << 63
LAST_S = 1e11


class CodingError(ValueError):
    """A line that fits nothing that was said before it."""


# What nonsense in a line leads to; ValueError is every error of lines and coding.
MALFORMED = (KeyError, IndexError, TypeError, ValueError, AttributeError, OverflowError)


def tick_of(line: Mapping[str, Any]) -> Tick:
    """Return the tick that a line is about. Raises CodingError, and what nonsense leads to."""
    tick = Tick(line["t"], line["l"] / TIME_UNITS_PER_S, line.get("m", 0), line.get("z", 0) / TIME_UNITS_PER_S)
    if not 0 <= tick.time_s <= LAST_S or not 0 <= tick.missed < LARGEST_COUNT:
        raise CodingError("a tick that cannot be")
    if not 0 <= tick.late_s <= LARGEST or not 0 <= tick.suspended_s <= LARGEST:
        raise CodingError("a time that cannot be")
    return tick


def problems_of(line: Mapping[str, Any], sources: int) -> dict[int, str]:
    """Return which of the sources had problems. Raises CodingError, and what nonsense leads to."""
    problems = dict(line.get("p", ()))
    if not all(0 <= place < sources and isinstance(text, str) for place, text in problems.items()):
        raise CodingError("a problem that is none")
    return problems


def events_of(line: Mapping[str, Any], sources: int) -> list[list[Event]]:
    """Return the events of each source. Raises CodingError, and what nonsense leads to."""
    events: list[list[Event]] = [[] for _ in range(sources)]
    for place, *row in line.get("e", ()):
        event = Event(*row)
        names([event.kind, event.text])
        if place < 0:
            raise CodingError("an event of no source")
        if event.time_s is not None and not 0 <= event.time_s <= LAST_S:
            # A log may say anything.
            event = replace(event, time_s=None)
        events[place].append(event)
    return events


def names(found: Iterable[Any]) -> list[str]:
    """Return what is found. Raises CodingError when it is not all text."""
    texts = list(found)
    if not all(isinstance(each, str) for each in texts):
        raise CodingError("a number for a name")
    return texts


def sources_of(found: Iterable[Any]) -> list[str]:
    """Return the sources of a line. Raises CodingError when one is there twice."""
    sources = names(found)
    if len(set(sources)) < len(sources):
        raise CodingError("a source that is there twice")
    return sources


def scalar(value: Any) -> int | float | str:
    """Return a value. Raises CodingError when it is none, or no finite number."""
    if type(value) is str or (type(value) in (int, float) and -LARGEST <= value <= LARGEST):
        return value  # type: ignore[no-any-return]
    raise CodingError(f"{str(value)[:40]} for a value")


def series_of(found: Iterable[Sequence[Any]]) -> list[tuple[str, Series]]:
    """Return series that are new. Raises CodingError, and what nonsense leads to."""
    return [(source, (name, *labels)) for source, name, *labels in map(names, found)]


def places(distances: Iterable[int]) -> list[int]:
    """Return the numbers that are so far from each other. Raises CodingError when they do not ascend."""
    found: list[int] = []
    number = 0
    for distance in array("q", distances):
        if distance < 0 or (distance == 0 and found):
            raise CodingError("numbers that do not ascend")
        number += distance
        found.append(number)
    return found

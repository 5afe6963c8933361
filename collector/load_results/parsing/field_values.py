"""Reads times, counts and latencies from the fields of results. Functions that read a field raise ValueError."""

import re
from collections.abc import Mapping
from datetime import datetime

from collector.load_results.client_latency import NS_PER_S, Latency, rounded_up
from collector.printable import one_line

MAX_LATENCY_NS = 86_400 * NS_PER_S
# The year 10000.
MAX_TIME_S = 253_402_300_800
MAX_COUNT = 10**15
FIRST_ERROR_STATUS = 400
MAX_LENGTH_S = 14 * 86_400
_RFC_3339 = re.compile(
    r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ](?P<time>[0-9]{2}:[0-9]{2}:[0-9]{2})"
    r"(?P<fraction>\.[0-9]+)?(?P<zone>[Zz]|[+-][0-9]{2}:[0-9]{2})?"
)
_CLOCK = re.compile(r"(\d{1,6}):(\d\d):(\d\d)")
_DIGITS = re.compile(r"[0-9]{1,19}")


def whole(text: str) -> int:
    """Return a whole number that is not negative."""
    if not _DIGITS.fullmatch(text):
        raise ValueError(f"not a whole number: {_shown(text)}")
    return int(text)


def decimal(value: str | float) -> float:
    """Return a number that a text states, or the value of a JSON field."""
    try:
        return float(value)
    except ValueError:
        raise ValueError(f"not a number: {_shown(value)}") from None


def _shown(value: object) -> str:
    return one_line(value)[:40] or "(empty)"


def rfc3339_s(text: str) -> float:
    """Return a time such as 2026-11-23T10:00:00.123+01:00 in seconds since the epoch."""
    match = _RFC_3339.fullmatch(text)
    if match is None:
        raise ValueError(f"not an RFC 3339 time: {one_line(text)}")
    if match["zone"] is None:
        raise ValueError(f"the time has no time zone: {one_line(text)}")
    zone = match["zone"].upper().replace("Z", "+00:00")
    seconds = datetime.fromisoformat(f"{match['date']}T{match['time']}{zone}").timestamp()
    # Nanoseconds could be rounded up to the next second.
    return checked_time_s(seconds + float((match["fraction"] or "0")[:7]))


def unix_time_s(text: str) -> float:
    """Convert a whole number of seconds, milliseconds, microseconds or nanoseconds since the epoch to seconds.

    The number of digits distinguishes the units, except for times before 1974.
    """
    if not _DIGITS.fullmatch(text):
        raise ValueError(f"not a time: {_shown(text)}")
    number, digits = int(text), len(text)
    units_per_s = 1 if digits < 12 else 10**3 if digits < 15 else 10**6 if digits < 18 else 10**9
    return checked_time_s(number * 10**6 // units_per_s / 10**6)


def clock_s(text: str) -> int | None:
    """Return a duration such as 00:01:30 in seconds; None if the text is not one."""
    match = _CLOCK.fullmatch(text)
    return int(match[1]) * 3600 + int(match[2]) * 60 + int(match[3]) if match else None


def checked_time_s(time_s: float) -> float:
    """Return a time if it is between 1970 and MAX_TIME_S."""
    if not 0 <= time_s < MAX_TIME_S:
        raise ValueError(f"time out of range: {time_s:g} s since 1970")
    return time_s


def latency_ns(value: float, unit_ns: int) -> int:
    """Return a latency in nanoseconds, rounded up to the resolution of `Latency.counts`."""
    if not 0 <= value * unit_ns <= MAX_LATENCY_NS:
        raise ValueError(f"not a latency: {value:g}")
    return rounded_up(round(value * unit_ns))


def stated_latency(stated_s: Mapping[float, float]) -> Latency:
    """Return percentiles that a load generator states, in seconds by percentage."""
    values_s = [value_s for _, value_s in sorted(stated_s.items())]
    if not all(0 <= value_s <= MAX_LATENCY_NS / NS_PER_S for value_s in values_s) or values_s != sorted(values_s):
        raise ValueError("the percentiles are not in ascending order, or exceed one day")
    return Latency(stated_s=dict(stated_s))


def checked_count(value: object) -> int:
    """Return a number of operations, which a file may also state with decimals, such as 12.0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_COUNT or value % 1:
        raise ValueError(f"not a number of operations: {_shown(value)}")
    return int(value)


def checked_length_s(value: object) -> float:
    """Return the duration of a run in seconds."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MAX_LENGTH_S:
        raise ValueError(f"not a duration of up to 14 days: {_shown(value)}")
    return float(value)


def status_errors(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the number of failed responses by kind of error, given the number of responses by status code."""
    return {
        f"status {status}": count for status, count in counts.items() if whole(status) >= FIRST_ERROR_STATUS and count
    }

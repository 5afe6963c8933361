"""Reads lines, CSV fields, JSON objects, names, times, counts and latencies from files of results.

Functions that read a field raise ValueError.
"""

import csv
import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

from collector.file_access import LineSplitter, read_whole
from collector.load_results.client_format import MALFORMED, ClientFormatError, reason_of
from collector.load_results.client_result import NS_PER_S, Operation, rounded_up
from collector.printable import count_text, one_line

MAX_LATENCY_NS = 86_400 * NS_PER_S
MAX_LATENCY_S = MAX_LATENCY_NS / NS_PER_S
# The year 10000.
MAX_TIME_S = 253_402_300_800
MAX_COUNT = 10**15
FIRST_ERROR_STATUS = 400
MAX_LENGTH_S = 14 * 86_400
_RFC_3339 = re.compile(
    r"(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ](?P<time>[0-9]{2}:[0-9]{2}:[0-9]{2})"
    r"(?P<fraction>\.[0-9]+)?(?P<zone>[Zz]|[+-][0-9]{2}:[0-9]{2})?"
)
# The micro sign, and the Greek letter that some programs print instead.
_GO_UNITS_S = {"ns": 1e-9, "us": 1e-6, "\u00b5s": 1e-6, "\u03bcs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_GO_PART = re.compile(r"(\d{1,12}(?:\.\d{1,12})?)([num\u00b5\u03bc]s|[smh])")
_GO_DURATION = re.compile(rf"(?:{_GO_PART.pattern})+")
_PERCENTILE = re.compile(r"p?\(?(\d{1,3}(?:\.\d{1,6})?)\)?%?")
_PERCENTAGES = {"min": 0.0, "med": 50.0, "max": 100.0}
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


def go_duration_s(text: str) -> float:
    """Return a duration as Go prints it, such as 1m2.5s, in seconds. Raises ValueError."""
    if text == "0":
        return 0.0
    if not _GO_DURATION.fullmatch(text):
        raise ValueError(f"not a duration: {text[:20]!r}")
    return sum((float(number) * _GO_UNITS_S[unit] for number, unit in _GO_PART.findall(text)), 0.0)


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


def stated_latency_s(value: float, unit_s: float = 1.0) -> float:
    """Return a latency in seconds. Raises ValueError if it is not a number or is implausible."""
    if not 0 <= value * unit_s <= MAX_LATENCY_S:
        raise ValueError(f"not a latency: {value:g}")
    return round(value * unit_s, 12)


def percentiles_s(values: Mapping[str, Any], units_per_s: float = 1.0) -> dict[float, float]:
    """Return percentiles in seconds by percentage, given their values by label, such as p99, p(99), 99%, med or max.

    Other labels are ignored.
    """
    stated_s = {}
    for label, value in values.items():
        match = _PERCENTILE.fullmatch(label)
        percentage = float(match[1]) if match else _PERCENTAGES.get(label)
        if percentage is not None and percentage <= 100:
            stated_s[percentage] = decimal(value) / units_per_s
    return stated_s


def checked_percentiles_s(stated_s: Mapping[float, float]) -> Mapping[float, float]:
    """Return percentiles that a load generator states, in seconds by percentage."""
    values_s = [value_s for _, value_s in sorted(stated_s.items())]
    if not all(0 <= value_s <= MAX_LATENCY_S for value_s in values_s) or values_s != sorted(values_s):
        raise ValueError("the percentiles are not in ascending order, or exceed one day")
    return stated_s


def checked_count(value: object) -> int:
    """Return a number of operations, which a file may also state with decimals, such as 12.0."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_COUNT or value % 1:
        raise ValueError(f"not a number of operations: {_shown(value)}")
    return int(value)


def succeeded(attempted: int, failed: int) -> int:
    """Return how many operations succeeded, given how many were made and how many failed."""
    if failed > attempted:
        raise ValueError("more failed operations than operations")
    return attempted - failed


def checked_length_s(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MAX_LENGTH_S:
        raise ValueError(f"not a duration of up to 14 days: {_shown(value)}")
    return float(value)


# Names: printable, short and few, whatever the file contains.

MAX_LABELS = 50
MAX_LABEL_CHARS = 80


class Labels:
    """The first MAX_LABELS different names; all further ones are "" and are counted in `omitted`."""

    def __init__(self) -> None:
        self.omitted = 0
        self._known = {""}

    def of(self, text: str, count: int = 1) -> str:
        """Return the name to use for a name in the file; if it is omitted, it counts `count` times."""
        label = text if text in self._known else label_of(text)
        if label in self._known:
            return label
        if len(self._known) > MAX_LABELS:
            self.omitted += count
            return ""
        self._known.add(label)
        return label

    def notes(self, noun: str, term: str, hint: str = "") -> list[str]:
        """Return a note if names were omitted: `noun` is a word for what has them, `term` one for such a name."""
        if not self.omitted:
            return []
        number = count_text(self.omitted, noun)
        return [f"{number} beyond the first {MAX_LABELS} {term}s are counted without a {term}{hint}"]


def label_of(text: str) -> str:
    """Return a name as one printable line of at most MAX_LABEL_CHARS characters."""
    return one_line(text)[:MAX_LABEL_CHARS].rstrip()


# Lines of whole files and of growing ones; memory does not grow with the file.

MAX_LINE_BYTES = 1 << 20
ANOTHER_RUN = "another run begins (hint: write each run to a file of its own)"
"""Why a header or a row of totals in the middle of a file is an error."""


def read_lines(path: Path, add: Callable[[str], None]) -> list[str]:
    """Pass each line that is not blank to `add`, which raises one of MALFORMED if it cannot read the line.

    Returns notes about a last line without a line break. Raises ClientFormatError, which names the line, and OSError.
    """
    with path.open("rb") as file:
        number = 0
        while raw := file.readline(MAX_LINE_BYTES + 1):
            number += 1
            if len(raw) > MAX_LINE_BYTES:
                raise ClientFormatError(f"line {number}: longer than {MAX_LINE_BYTES >> 20} MiB")
            line = raw.decode(errors="replace").removeprefix("\ufeff" if number == 1 else "").rstrip("\r\n")
            if not line.strip():
                continue
            try:
                add(line)
            except MALFORMED as error:
                if raw.endswith(b"\n"):
                    raise ClientFormatError(f"line {number}: {reason_of(error)}") from None
                return ["the last line is incomplete and is ignored"]
            if not raw.endswith(b"\n"):
                return ["the last line has no line end and may be incomplete"]
    return []


def csv_fields(line: str, delimiter: str = ",") -> list[str]:
    try:
        return next(csv.reader([line], delimiter=delimiter, strict=True))
    except (csv.Error, StopIteration) as error:
        raise ValueError(f"not CSV: {error}") from None


def csv_row(line: str, columns: Sequence[str]) -> dict[str, str]:
    fields = csv_fields(line)
    if len(fields) != len(columns):
        raise ValueError(f"{len(fields)} fields instead of {len(columns)}")
    return dict(zip(columns, fields, strict=True))


class GrowingLines:
    """A growing result (see `GrowingResult`) whose lines are read by `add_line`, as by `read_lines`."""

    def __init__(self, add_line: Callable[[str], None], take: Callable[[], tuple[Operation, ...]]) -> None:
        self.problem = ""
        self.take = take
        self._add_line = add_line
        self._lines = LineSplitter(MAX_LINE_BYTES)

    def add(self, data: bytes) -> int:
        malformed = 0
        for line in self._lines.complete(data):
            if not line.strip():
                continue
            try:
                self._add_line(line.decode(errors="replace").strip())
            except MALFORMED as error:
                self.problem = self.problem or reason_of(error)
                malformed += 1
        return malformed


# JSON objects in files that may also contain other programs' lines, such as a command's output.

MAX_BYTES = 64 << 20
# Without a limit, a file of many brackets would take quadratic time.
MAX_ATTEMPTS = 1000
# With `\s`, which matches newlines, empty lines would take quadratic time.
_BEGIN = re.compile(r"^[ \t]*(?=\{)", re.MULTILINE)


def json_objects(path: Path) -> list[Mapping[str, Any]]:
    """Return the objects in a file; each begins at the beginning of a line. Raises ValueError and OSError."""
    text = read_whole(path, MAX_BYTES).decode(errors="replace").removeprefix("\ufeff")
    decoder = json.JSONDecoder(parse_constant=_refuse)
    objects: list[Mapping[str, Any]] = []
    position, reason = 0, "no JSON object"
    for _ in range(MAX_ATTEMPTS):
        match = _BEGIN.search(text, position)
        if match is None:
            break
        try:
            content, position = decoder.raw_decode(text, match.end())
            objects.append(content)
        except ValueError:
            position, reason = match.end() + 1, "the JSON object is damaged or incomplete"
    if not objects:
        raise ValueError(reason)
    return objects


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number")

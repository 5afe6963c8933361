"""Formatted times in JMeter's CSV (`jmeter.save.saveservice.timestamp_format`).

The file does not state the format, a pattern of Java's SimpleDateFormat, so it is deduced from the first row: a date in
numbers, a time of 24 hours, and perhaps milliseconds and a time zone. Whether a date such as 02/11/26 begins with the
month or the day is unknown; the date that is nearer to the run is taken.
"""

import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone, tzinfo
from functools import lru_cache

MS_PER_S = 1000
ZONES = {"local": None, "UTC": timezone.utc}
_TIME = (
    rb'^(?P<quote>")?(?P<first>\d{1,4})(?P<separator>[/.-])(?P<second>\d{1,2})(?P=separator)(?P<third>\d{2}|\d{4})[ T]'
    rb"(?P<time>\d{1,2}:\d{2}:\d{2})(?:(?(quote)[.,:]|[.:])(?P<ms>\d{3}))?(?: ?(?P<zone>Z|[+-]\d{2}(?::?\d{2})?))?"
    rb'(?(quote)")(?=%s)'
)
YEAR_FIRST, MONTH_FIRST, DAY_FIRST = (0, 1, 2), (2, 0, 1), (2, 1, 0)
"""The positions of year, month and day."""


def starts_with_time(line: bytes) -> bytes:
    """Return the delimiter after a time, formatted or in milliseconds, at the beginning of a line; b"" if none is."""
    match = re.match(_TIME % rb"[,;|\t]", line) or re.match(rb"\d{13}(?=[,;|\t])", line)
    return line[match.end() : match.end() + 1] if match else b""


@dataclass
class JtlTimes:
    """Replaces formatted times at the beginning of rows by milliseconds since the epoch.

    near_s  a time in seconds since the epoch that is near to the rows' times.
    zone    the time zone of times that state none; None for this machine's.
    """

    delimiter: str
    near_s: float
    zone: tzinfo | None = None
    notes: list[str] = field(default_factory=list)
    has_whole_seconds: bool = False

    def __post_init__(self) -> None:
        self._pattern = re.compile(_TIME % re.escape(self.delimiter).encode(), re.MULTILINE)
        self._order: tuple[int, int, int] | None = None
        self._second_s = lru_cache(maxsize=10_000)(self._uncached_second_s)

    def converted(self, block: bytes) -> bytes:
        """Return a block of rows with its times in milliseconds; malformed times remain as they are."""
        if re.match(rb"\s*\d+%s" % re.escape(self.delimiter).encode(), block):
            return block
        return self._pattern.sub(self._converted_time, block)

    def _converted_time(self, match: re.Match[bytes]) -> bytes:
        date = match["first"], match["second"], match["third"]
        try:
            if self._order is None:
                self._begin(match, date)
            second_s = self._second_s(date, match["time"], match["zone"] or b"")
        except (ValueError, OverflowError, OSError):
            return match[0]
        return b"%d" % (second_s * MS_PER_S + int(match["ms"] or 0))

    def _begin(self, match: re.Match[bytes], date: tuple[bytes, ...]) -> None:
        """Deduce the format from the first time. Raises ValueError."""
        orders = [YEAR_FIRST] if len(date[0]) == 4 else [MONTH_FIRST, DAY_FIRST]
        distances = {}
        for order in orders:
            self._order = order
            try:
                second_s = self._uncached_second_s(date, match["time"], match["zone"] or b"")
                distances[abs(second_s - self.near_s)] = order
            except (ValueError, OverflowError, OSError):
                continue
        self._order = distances[min(distances)] if distances else None
        if self._order is None:
            raise ValueError("not a date")
        if match["zone"] is None and self.zone is None:
            self.notes.append(
                "timeStamp states no time zone: this machine's is assumed (hint: jmeter-csv,zone=UTC:FILE)"
            )
        if len(distances) > 1:
            name = "month" if self._order == MONTH_FIRST else "day"
            self.notes.append(f"timeStamp is assumed to begin with the {name}, because that is nearer to the run")
        if match["ms"] is None:
            self.has_whole_seconds = True
            self.notes.append("timeStamp has whole seconds, so operations may be assigned to the second before")

    def _uncached_second_s(self, date: tuple[bytes, ...], time: bytes, zone: bytes) -> int:
        assert self._order is not None  # noqa: S101 - `_begin` has set it
        year, month, day = (int(date[position]) for position in self._order)
        hour, minute, second = map(int, time.split(b":"))
        year += 2000 if year < 100 else 0
        return int(datetime(year, month, day, hour, minute, second, tzinfo=_zone(zone) or self.zone).timestamp())


def _zone(text: bytes) -> tzinfo | None:
    if not text:
        return None
    if text == b"Z":
        return timezone.utc
    offset = timedelta(hours=int(text[1:3]), minutes=int(text[3:].lstrip(b":") or 0))
    return timezone(-offset if text.startswith(b"-") else offset)

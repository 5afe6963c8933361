"""Dates as Java's formatters write them: a format such as `yyyy-MM-dd HH:mm:ss,SSS` becomes what reads them back."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo

# Logs of this century; nothing else is worth computing with.
YEARS = range(1970, 3000)
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
# What it takes to know a moment: of each, one of these.
NEEDED = (
    ({"year", "day", "minute", "second"},),
    ({"month"}, {"month_name"}),
    ({"hour"}, {"hour_to_24"}, {"half", "hour12"}),
)

_RUN = re.compile(r"'(?P<quoted>(?:[^']|'')*)'|(?P<letters>(?P<letter>[A-Za-z])(?P=letter)*)|(?P<other>.)", re.DOTALL)
_FIXED = re.compile(r"(?:GMT|UTC)(?P<sign>[+-])(?P<hours>\d{1,2})(?::?(?P<minutes>\d{2}))?")
_OFFSET = re.compile(r"(?P<sign>[+-])(?P<hours>\d{2})(?::?(?P<minutes>\d{2}))?")
_NAMES = re.compile(r"\(\?P<\w+>")

# The same number, however it is written.
_NUMBERS = {
    "y": "year",
    "u": "year",
    "M": "month",
    "L": "month",
    "d": "day",
    "H": "hour",
    "k": "hour_to_24",
    "h": "hour12",
    "K": "hour12",
    "m": "minute",
    "s": "second",
}
_TEXTS = {
    "a": r"(?P<half>[^\W\d_]{1,4})",
    "E": r"[^\W\d_]{2,20}\.?",
    # The zone's name says less than the format's own zone, which is known.
    "z": r"[\w+:/ -]{1,40}?",
    **dict.fromkeys("ZXx", r"(?P<offset>Z|(?:GMT)?[+-]\d{2}(?::?\d{2})?)"),
}


@dataclass(frozen=True)
class DateFormat:
    """What reads dates of one format.

    expression   a regular expression for them, without groups.
    """

    expression: str
    _parts: re.Pattern[str]
    _zone: tzinfo | None
    _whole: bool

    def seconds(self, text: str, now_s: float) -> float | None:
        """Return the date as seconds since the epoch; None when it is not understood, or not the whole of a date.

        In the hour that comes twice when summer time ends, the one nearer to `now_s` is meant.
        """
        found = self._parts.fullmatch(text) if self._whole else None
        if found is None:
            return None
        try:
            moment, zone = _moment(found.groupdict()), _offset(found.groupdict().get("offset")) or self._zone
            either = [moment.replace(tzinfo=zone, fold=fold).timestamp() for fold in (0, 1)]
        except (ValueError, OverflowError):
            return None
        return min(either, key=lambda seconds: abs(seconds - now_s))


def date_format(text: str, zone: tzinfo | None = None) -> DateFormat:
    """Return what reads dates in Java's format `text`, in the local time zone unless there is another.

    Letters that are not known are passed over: such dates are found, but their time is not known.
    """
    parts: list[str] = []
    known = True
    names: set[str] = set()
    for run in _RUN.finditer(text):
        expression = _expression(run)
        known = known and expression is not None
        for name in re.findall(r"\?P<(\w+)>", expression or ""):
            # Written twice, the first is as good as the second.
            expression = expression and (expression if name not in names else _NAMES.sub("(?:", expression))
            names.add(name)
        parts.append(expression or r".{1,40}?")
    joined = "".join(parts)
    whole = known and all(any(parts <= names for parts in either) for either in NEEDED)
    return DateFormat(_NAMES.sub("(?:", joined), re.compile(joined), zone, whole)


def zone_of(name: str) -> tzinfo:
    """Return the zone that Java calls `name`, such as Europe/Paris or GMT+8. Raises ValueError for none of them."""
    if name in ("UTC", "GMT", "Z", "Etc/UTC"):
        return timezone.utc
    if fixed := _FIXED.fullmatch(name):
        return _fixed(fixed)
    # Only now: hardly any format names a zone, and it brings all that Python knows of its own making.
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError):
        raise ValueError(f"the time zone '{name}' is not known here") from None


def _expression(run: re.Match[str]) -> str | None:
    """Return the regular expression for one run of a format; None for letters that are not known."""
    if run["letters"] is None:
        return re.escape("'" if run["quoted"] == "" else (run["quoted"] or run["other"]).replace("''", "'"))
    letter, width = run["letter"], len(run["letters"])
    if letter in "ML" and width > 2:
        return r"(?P<month_name>[^\W\d_]{3,20})\.?"
    if letter == "S":
        # Of other widths Java's two families of formatters mean different things.
        return r"(?P<millisecond>\d{3})" if width == 3 else None
    if letter in _NUMBERS:
        digits = "{2}" if width == 2 else "{4}" if letter in "yu" else "{1,2}"
        return rf"(?P<{_NUMBERS[letter]}>\d{digits})"
    return _TEXTS.get(letter)


def _moment(part: dict[str, str | None]) -> datetime:
    """Return the date and time without their zone. Raises ValueError when there is no such moment."""
    digits = part["year"] or ""
    year = int(digits) + (2000 if len(digits) == 2 else 0)
    if year not in YEARS:
        raise ValueError(year)
    month = int(part.get("month") or "0") or 1 + MONTHS.index((part.get("month_name") or "")[:3].lower())
    milliseconds = int(part.get("millisecond") or "0")
    return datetime(
        year,
        month,
        int(part["day"] or ""),
        _hour(part),
        int(part["minute"] or ""),
        int(part["second"] or ""),
        milliseconds * 1000,
    )


def _hour(part: dict[str, str | None]) -> int:
    if hour := part.get("hour"):
        return int(hour)
    if hour := part.get("hour_to_24"):
        return int(hour) % 24
    halves = ("am", "pm")
    return int(part.get("hour12") or "") % 12 + 12 * halves.index((part.get("half") or "").lower())


def _offset(text: str | None) -> tzinfo | None:
    if text is None:
        return None
    found = _OFFSET.search(text)
    return _fixed(found) if found else timezone.utc


def _fixed(found: re.Match[str]) -> tzinfo:
    """Return the zone of an offset. Raises ValueError for a day or more."""
    ahead = timedelta(hours=int(found["hours"]), minutes=int(found["minutes"] or "0"))
    return timezone(ahead if found["sign"] == "+" else -ahead)

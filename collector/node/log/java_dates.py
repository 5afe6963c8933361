"""Parses dates according to Java format strings such as `yyyy-MM-dd HH:mm:ss,SSS`."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo

# Dates outside these years are treated as malformed.
YEARS = range(1970, 3000)
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
# Each row lists alternative sets of fields. A complete date has all fields of at least one set in each row.
REQUIRED_FIELDS = (
    ({"year", "day", "minute", "second"},),
    ({"month"}, {"month_name"}),
    ({"hour"}, {"hour_to_24"}, {"half", "hour12"}),
)

_RUN = re.compile(r"'(?P<quoted>(?:[^']|'')*)'|(?P<letters>(?P<letter>[A-Za-z])(?P=letter)*)|(?P<other>.)", re.DOTALL)
_FIXED = re.compile(r"(?:GMT|UTC)(?P<sign>[+-])(?P<hours>\d{1,2})(?::?(?P<minutes>\d{2}))?")
_OFFSET = re.compile(r"(?P<sign>[+-])(?P<hours>\d{2})(?::?(?P<minutes>\d{2}))?")
_NAMES = re.compile(r"\(\?P<\w+>")

# Java's format letters for numeric fields.
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
    # Zone abbreviations are ambiguous, so they are ignored, and the format's zone is used.
    "z": r"[\w+:/ -]{1,40}?",
    **dict.fromkeys("ZXx", r"(?P<offset>Z|(?:GMT)?[+-]\d{2}(?::?\d{2})?)"),
}


@dataclass(frozen=True)
class DateFormat:
    """A parser for dates in one format.

    expression  regular expression that matches such a date and contains no capturing groups.
    """

    expression: str
    _fields: re.Pattern[str]
    _zone: tzinfo | None
    _complete: bool

    def seconds(self, text: str, now_s: float) -> float | None:
        """Return the date in seconds since the epoch, or None if it is malformed or incomplete.

        In the ambiguous hour at the end of daylight saving time, the result is the one closer to `now_s`.
        """
        match = self._fields.fullmatch(text) if self._complete else None
        if match is None:
            return None
        fields = match.groupdict()
        try:
            local, zone = _local_time(fields), _offset(fields.get("offset")) or self._zone
            candidates = [local.replace(tzinfo=zone, fold=fold).timestamp() for fold in (0, 1)]
        except (ValueError, OverflowError):
            return None
        return min(candidates, key=lambda seconds: abs(seconds - now_s))


def date_format(text: str, zone: tzinfo | None = None) -> DateFormat:
    """Return the parser for the Java date format `text`, in the local time zone unless `zone` is given.

    If the format contains unsupported letters or lacks a required field, the parser still matches dates, but cannot
    convert them to a time.
    """
    parts: list[str] = []
    is_supported = True
    names: set[str] = set()
    for run in _RUN.finditer(text):
        expression = _expression(run)
        is_supported = is_supported and expression is not None
        for name in re.findall(r"\?P<(\w+)>", expression or ""):
            # If a field is repeated, its first occurrence is used.
            expression = expression and (expression if name not in names else _NAMES.sub("(?:", expression))
            names.add(name)
        parts.append(expression or r".{1,40}?")
    joined = "".join(parts)
    is_complete = is_supported and all(any(fields <= names for fields in row) for row in REQUIRED_FIELDS)
    return DateFormat(_NAMES.sub("(?:", joined), re.compile(joined), zone, is_complete)


def zone_of(name: str) -> tzinfo:
    """Return the time zone for a Java zone name such as Europe/Paris or GMT+8. Raises ValueError if it is unknown."""
    if name in ("UTC", "GMT", "Z", "Etc/UTC"):
        return timezone.utc
    if match := _FIXED.fullmatch(name):
        return _fixed(match)
    # Imported lazily, because zoneinfo also imports sysconfig, and few date formats name a zone.
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (KeyError, OSError, ValueError):
        raise ValueError(f"unknown time zone '{name}'") from None


def _expression(run: re.Match[str]) -> str | None:
    """Return the regular expression for one repeated letter or for other text; None if the letter is not supported."""
    if run["letters"] is None:
        return re.escape("'" if run["quoted"] == "" else (run["quoted"] or run["other"]).replace("''", "'"))
    letter, width = run["letter"], len(run["letters"])
    if letter in "ML" and width > 2:
        return r"(?P<month_name>[^\W\d_]{3,20})\.?"
    if letter == "S":
        # Java's two date formatters disagree on the meaning of other widths.
        return r"(?P<millisecond>\d{3})" if width == 3 else None
    if letter in _NUMBERS:
        digits = "{2}" if width == 2 else "{4}" if letter in "yu" else "{1,2}"
        return rf"(?P<{_NUMBERS[letter]}>\d{digits})"
    return _TEXTS.get(letter)


def _local_time(fields: dict[str, str | None]) -> datetime:
    """Return the date and time without a zone. Raises ValueError if they are invalid."""
    digits = fields["year"] or ""
    year = int(digits) + (2000 if len(digits) == 2 else 0)
    if year not in YEARS:
        raise ValueError(year)
    month = int(fields.get("month") or "0") or 1 + MONTHS.index((fields.get("month_name") or "")[:3].lower())
    milliseconds = int(fields.get("millisecond") or "0")
    return datetime(
        year,
        month,
        int(fields["day"] or ""),
        _hour(fields),
        int(fields["minute"] or ""),
        int(fields["second"] or ""),
        milliseconds * 1000,
    )


def _hour(fields: dict[str, str | None]) -> int:
    if hour := fields.get("hour"):
        return int(hour)
    if hour := fields.get("hour_to_24"):
        return int(hour) % 24
    halves = ("am", "pm")
    return int(fields.get("hour12") or "") % 12 + 12 * halves.index((fields.get("half") or "").lower())


def _offset(text: str | None) -> tzinfo | None:
    if text is None:
        return None
    match = _OFFSET.search(text)
    return _fixed(match) if match else timezone.utc


def _fixed(match: re.Match[str]) -> tzinfo:
    """Return the zone with a fixed offset. Raises ValueError if the offset is a day or more."""
    offset = timedelta(hours=int(match["hours"]), minutes=int(match["minutes"] or "0"))
    return timezone(offset if match["sign"] == "+" else -offset)

"""The result of the parsers of nodetool's reports, and their common parts: lines, numbers, problems and tables."""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from collector.jolokia.mbean import LARGEST
from collector.model.metric import Series, Value, Values

QUANTILES = {"50%": "0.5", "75%": "0.75", "95%": "0.95", "98%": "0.98", "99%": "0.99", "Max": "1"}
"""The rows that are read from nodetool's histograms, and their `quantile` labels."""

_WHOLE = re.compile(r"[0-9]{1,19}")
_DECIMAL = re.compile(r"-?[0-9]{1,18}(?:\.[0-9]+(?:[eE]-?[0-9]{1,3})?|[eE]-?[0-9]{1,3})")
_SIZE = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,2})?) ?(KiB|MiB|GiB|TiB)")
_UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_COMPLAINT = re.compile(r"(?:nodetool|error|Error): ")
_SHOWN = 100


@dataclass(frozen=True)
class Report:
    """The content of one report.

    values      raw values, before their metric's scale.
    problems    one line each: what was malformed, and where.
    properties  texts that identify the node, such as its host id.
    """

    values: Values = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)


class Draft:
    """Collects a report. A series with two different values is ambiguous, and therefore absent."""

    def __init__(self, text: str) -> None:
        *self.lines, rest = (line.rstrip("\r") for line in text.split("\n"))
        self._first = next((line.strip() for line in [*self.lines, rest] if line.strip()), "")
        self._values: Values = {}
        self._doubtful: set[Series] = set()
        self._problems: dict[str, list[str]] = {}
        self.understood = False
        if rest.strip():
            # A truncated number looks like a different number.
            self.problem("its last line has no end and is not believed")
        for line in self.lines:
            if _COMPLAINT.match(line):
                self.problem(f"nodetool says {shown(line)}")

    def problem(self, what: str, where: str = "") -> None:
        """Add a problem; of several places with the same problem, the report names one and counts the others."""
        places = self._problems.setdefault(what, [])
        if where and where not in places:
            places.append(where)

    def put(self, series: Series, value: Value | None) -> None:
        """Add a value; None if the report states that it is unknown, such as the mean of no operations."""
        self.understood = True
        if value is None or series in self._doubtful:
            return
        if self._values.setdefault(series, value) != value:
            del self._values[series]
            self._doubtful.add(series)
            self.problem("what is told twice, and differently, is not believed", " ".join(series))

    def take(
        self, series: Series, convert: Callable[[object], Value | None], raw: object, what: str, where: str = ""
    ) -> None:
        """Convert and add a value, or a problem with the message of the conversion's ValueError."""
        try:
            self.put(series, convert(raw))
        except ValueError as error:
            self.problem(f"{what} {error}", f"{shown(raw)} of {where}" if where else shown(raw))

    def report(self, properties: Mapping[str, str] | None = None) -> Report:
        """Return the collected report."""
        problems = [_told(what, places) for what, places in self._problems.items()]
        if not self.understood:
            begins = f"it begins with {shown(self._first)}" if self._first else "it is empty"
            problems.append(f"nothing of the report is understood; {begins}")
        return Report(self._values, tuple(problems), properties or {})


def _told(what: str, places: list[str]) -> str:
    if not places:
        return what
    more = f" and {len(places) - 1} more" if len(places) > 1 else ""
    return f"{what} ({places[0]}{more})"


def shown(raw: object) -> str:
    """Return a malformed text as one short line."""
    text = ascii(raw)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def whole(raw: object) -> int:
    """Return a count. Raises ValueError for anything but digits."""
    if isinstance(raw, str) and _WHOLE.fullmatch(raw):
        raw = int(raw)
    if type(raw) is int and 0 <= raw <= LARGEST:
        return raw
    raise ValueError("is no whole number")


def decimal(raw: object) -> float | None:
    """Return a number with a decimal point, None for NaN. Raises ValueError for other formats, such as a comma."""
    if raw is None or raw == "NaN":
        return None
    if isinstance(raw, str) and _DECIMAL.fullmatch(raw):
        raw = float(raw)
    if isinstance(raw, int | float) and not isinstance(raw, bool) and math.isfinite(raw) and abs(raw) <= LARGEST:
        return float(raw)
    raise ValueError("is no decimal number")


def milliseconds(raw: object) -> float | None:
    """Return the number before `ms`, None for NaN. Raises ValueError for other formats."""
    if isinstance(raw, str) and raw.endswith("ms"):
        with suppress(ValueError):
            number = decimal(raw[:-2].rstrip())
            if number is None or number >= 0:
                return number
    raise ValueError("is no number of milliseconds")


def size(raw: object) -> int:
    """Return a size in bytes, as precise as nodetool's rounding. Raises ValueError for other units and formats."""
    if isinstance(raw, str):
        if human := _SIZE.fullmatch(raw):
            return round(float(human[1]) * _UNITS[human[2]])
        raw = raw.removesuffix(" bytes")
    try:
        return whole(raw)
    except ValueError:
        raise ValueError("is no number of bytes") from None


def parted(line: str) -> tuple[str, str]:
    """Return the label before the first colon, with single spaces, and the value after it; ("", "") without a colon."""
    label, colon, value = line.partition(":")
    return (" ".join(label.split()), value.strip()) if colon else ("", "")


def unique(lines: Iterable[str], labels: Iterable[str], draft: Draft) -> dict[str, str]:
    """Return the value of each label; a missing or ambiguous one is a problem."""
    told: dict[str, set[str]] = {label: set() for label in labels}
    for label, value in map(parted, lines):
        if label in told:
            told[label].add(value)
    if any(told.values()):
        for label, values in told.items():
            if len(values) != 1:
                draft.problem(f"{label!r} is told twice, and differently" if values else f"there is no {label!r}")
    return {label: next(iter(values)) for label, values in told.items() if len(values) == 1}


@dataclass(frozen=True)
class Columns:
    """A table's header: the labels in their order, "" for a word that is not known, and where each begins and ends."""

    labels: tuple[str, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]

    def cells(self, row: str) -> dict[str, str] | None:
        """Return the cells by label in a table whose cells have no blanks; None unless there is one for each."""
        found = list(re.finditer(r"\S+", row))
        if len(found) != len(self.labels) or not (all(self.labels) or self._over(found)):
            # A label that is not known may have several words over a single cell.
            return self.aligned(row)
        return {label: cell[0] for label, cell in zip(self.labels, found, strict=True) if label}

    def _over(self, cells: Iterable[re.Match[str]]) -> bool:
        """Return whether each cell begins or ends where its label does."""
        labels = zip(self.starts, self.ends, strict=True)
        return all(cell.start() == start or cell.end() == end for cell, (start, end) in zip(cells, labels, strict=True))

    def aligned(self, row: str, may_be_empty: Iterable[str] = ()) -> dict[str, str] | None:
        """Return the cells by label in a table whose cells begin under their labels; None when one does not."""
        found = {}
        for label, start, end in zip(self.labels, self.starts, [*self.starts[1:], None], strict=True):
            if not label:
                continue
            cell = row[start:end]
            begins = cell[:1].strip() and not row[:start][-1:].strip()
            ends = end is None or not cell[-1:].strip() or not row[end : end + 1].strip()
            if not (begins and ends) and (cell.strip() or label not in may_be_empty):
                return None
            found[label] = " ".join(cell.split())
        return found


def columns(header: str, labels: Iterable[str], needed: Iterable[str]) -> Columns | None:
    """Return where the labels stand in a header; None for a line that is none, for it lacks what is needed.

    A word that is no part of a label counts as a column of its own.
    """
    longest_first = sorted(labels, key=len, reverse=True)
    # gcstats sets its labels so close that one begins where the unit of another ends.
    words = [
        r"\s+".join(map(re.escape, label.split())) + ("" if label.endswith(")") else r"(?!\S)")
        for label in longest_first
    ]
    found = list(re.finditer("|".join([*words, r"\S+"]), header))
    names = [name if (name := " ".join(match[0].split())) in longest_first else "" for match in found]
    known = [name for name in names if name]
    if len(set(known)) != len(known) or not set(needed) <= set(known):
        return None
    return Columns(tuple(names), tuple(match.start() for match in found), tuple(match.end() for match in found))


def objects(text: str) -> list[dict[str, Any]]:
    """Return the JSON objects that begin a line of the text and are whole, whatever lines stand around them."""
    found = []
    position = 0
    while begins := _OBJECT.search(text, position):
        position = begins.end()
        try:
            each, end = _JSON.raw_decode(text, begins.start())
        except (ValueError, RecursionError):
            continue
        # What goes on behind its end has lost a line: nothing of it is where it was.
        if not _GOES_ON.match(text, end):
            found.append(each)
        position = end
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


_OBJECT = re.compile(r"^\{", re.MULTILINE)
_GOES_ON = re.compile(r"[^\S\n]*\S|\s*[],}:]")
_JSON = json.JSONDecoder(object_pairs_hook=_once, parse_constant=lambda _: None)

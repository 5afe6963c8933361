"""The result of parsing a nodetool report, and the parsers' shared code for lines, numbers, problems and tables."""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from collector.model.mbean import MAX_NUMBER
from collector.model.metric import Series, Value, Values
from collector.printable import names_text

QUANTILES = {"50%": "0.5", "75%": "0.75", "95%": "0.95", "98%": "0.98", "99%": "0.99", "Max": "1"}
"""The rows to read from nodetool's histograms, each with its `quantile` label."""

_WHOLE = re.compile(r"[0-9]{1,19}")
_DECIMAL = re.compile(r"-?[0-9]{1,18}(?:\.[0-9]+(?:[eE]-?[0-9]{1,3})?|[eE]-?[0-9]{1,3})")
_SIZE = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,2})?) ?(KiB|MiB|GiB|TiB)")
_UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_ERROR = re.compile(r"(?:nodetool|error|Error): ")
_SHOWN = 100


@dataclass(frozen=True)
class Report:
    """The content of one report.

    values      raw values, before they are multiplied by their metric's scale.
    problems    one line for each problem, with the malformed item and its location if known.
    properties  facts by name, such as the node's data centre; in the `status` report, addresses by host id.
    """

    values: Values = field(default_factory=dict)
    problems: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)


class Draft:
    """Collects a report's content. A series with two different values is ambiguous and therefore absent."""

    def __init__(self, text: str) -> None:
        *self.lines, unterminated = (line.rstrip("\r") for line in text.split("\n"))
        self._first = next((line.strip() for line in [*self.lines, unterminated] if line.strip()), "")
        self._values: Values = {}
        self._doubtful: set[Series] = set()
        self._problems: dict[str, list[str]] = {}
        self.recognised = False
        if unterminated.strip():
            # Ignore an unfinished line, because a truncated number looks like a smaller one.
            self.problem("the last line is truncated, so it is ignored")
        for line in self.lines:
            if _ERROR.match(line):
                self.problem(f"nodetool printed {shown(line)}")

    def problem(self, message: str, location: str = "") -> None:
        """Add a problem. If it occurs at several locations, the report names the first and the number of others."""
        locations = self._problems.setdefault(message, [])
        if location and location not in locations:
            locations.append(location)

    def put(self, series: Series, value: Value | None) -> None:
        """Add a value. None stands for a value that the report declares unknown, such as the mean of no operations."""
        self.recognised = True
        if value is None or series in self._doubtful:
            return
        if self._values.setdefault(series, value) != value:
            del self._values[series]
            self._doubtful.add(series)
            self.problem("conflicting values, ignored", " ".join(series))

    def take(
        self, series: Series, convert: Callable[[object], Value | None], raw: object, subject: str, location: str = ""
    ) -> None:
        """Convert and add a value. If `convert` raises ValueError, add a problem with the error's message instead."""
        try:
            self.put(series, convert(raw))
        except ValueError as error:
            self.problem(f"{subject} {error}", f"{shown(raw)} of {location}" if location else shown(raw))

    def report(self, properties: Mapping[str, str] | None = None) -> Report:
        problems = [
            f"{message} ({names_text(locations, 1)})" if locations else message
            for message, locations in self._problems.items()
        ]
        if not self.recognised:
            begins = f"begins with {shown(self._first)}" if self._first else "empty"
            problems.append(f"unrecognised report: {begins}")
        return Report(self._values, tuple(problems), properties or {})


def shown(raw: object) -> str:
    """Return a malformed value, quoted and shortened for use in a message."""
    text = ascii(raw)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def whole(raw: object) -> int:
    """Return a whole number, given as digits or as an integer. Raises ValueError for anything else."""
    if isinstance(raw, str) and _WHOLE.fullmatch(raw):
        raw = int(raw)
    if type(raw) is int and 0 <= raw <= MAX_NUMBER:
        return raw
    raise ValueError("is not a valid whole number")


def decimal(raw: object) -> float | None:
    """Return a number, or None for NaN or null. Raises ValueError for other formats, such as a decimal comma."""
    if raw is None or raw == "NaN":
        return None
    if isinstance(raw, str) and _DECIMAL.fullmatch(raw):
        raw = float(raw)
    if isinstance(raw, int | float) and not isinstance(raw, bool) and math.isfinite(raw) and abs(raw) <= MAX_NUMBER:
        return float(raw)
    raise ValueError("is not a decimal number")


def size(raw: object) -> int:
    """Return a size in bytes, which nodetool may have rounded. Raises ValueError for unknown units and formats."""
    if isinstance(raw, str):
        if human := _SIZE.fullmatch(raw):
            return round(float(human[1]) * _UNITS[human[2]])
        raw = raw.removesuffix(" bytes")
    try:
        return whole(raw)
    except ValueError:
        raise ValueError("is not a size in bytes") from None


def parted(line: str) -> tuple[str, str]:
    """Split a line at the first colon into a label (spaces normalised) and a value; ("", "") if it has no colon."""
    label, colon, value = line.partition(":")
    return (" ".join(label.split()), value.strip()) if colon else ("", "")


def unique(lines: Iterable[str], labels: Iterable[str], draft: Draft) -> dict[str, str]:
    """Return the value of each label that has exactly one. If any label is present, add a problem for all others."""
    values_by_label: dict[str, set[str]] = {label: set() for label in labels}
    for label, value in map(parted, lines):
        if label in values_by_label:
            values_by_label[label].add(value)
    if any(values_by_label.values()):
        for label, values in values_by_label.items():
            if len(values) != 1:
                draft.problem(f"conflicting values for {label!r}" if values else f"missing {label!r}")
    return {label: next(iter(values)) for label, values in values_by_label.items() if len(values) == 1}


@dataclass(frozen=True)
class Columns:
    """A table's header: its labels in order ("" for an unknown word), and where each of them begins and ends."""

    labels: tuple[str, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]

    def cells(self, row: str) -> dict[str, str] | None:
        """Return a row's cells by label, split at spaces or, if ambiguous, by position; None if neither works."""
        cells = list(re.finditer(r"\S+", row))
        if len(cells) != len(self.labels) or not (all(self.labels) or self._over(cells)):
            # Splitting at spaces is ambiguous, for example because an unknown label has several words above one cell.
            return self.aligned(row)
        return {label: cell[0] for label, cell in zip(self.labels, cells, strict=True) if label}

    def _over(self, cells: Iterable[re.Match[str]]) -> bool:
        """Return whether each cell is aligned with the beginning or the end of its label."""
        labels = zip(self.starts, self.ends, strict=True)
        return all(cell.start() == start or cell.end() == end for cell, (start, end) in zip(cells, labels, strict=True))

    def aligned(self, row: str, may_be_empty: Iterable[str] = ()) -> dict[str, str] | None:
        """Return a row's cells by label if they are aligned with the header, otherwise None.

        Only the cells in the columns `may_be_empty` may be empty.
        """
        cells = {}
        for label, start, end in zip(self.labels, self.starts, [*self.starts[1:], None], strict=True):
            if not label:
                continue
            cell = row[start:end]
            begins = cell[:1].strip() and not row[:start][-1:].strip()
            ends = end is None or not cell[-1:].strip() or not row[end : end + 1].strip()
            if not (begins and ends) and (cell.strip() or label not in may_be_empty):
                return None
            cells[label] = " ".join(cell.split())
        return cells


def columns(header: str, labels: Iterable[str], required: Iterable[str]) -> Columns | None:
    """Return the columns of a header line; None if the line is not a header with all `required` labels.

    A word that does not belong to one of `labels` counts as a separate column.
    """
    longest_first = sorted(labels, key=len, reverse=True)
    # In the gcstats header, some labels follow the unit of the previous label without a space.
    words = [
        r"\s+".join(map(re.escape, label.split())) + ("" if label.endswith(")") else r"(?!\S)")
        for label in longest_first
    ]
    matches = list(re.finditer("|".join([*words, r"\S+"]), header))
    names = [name if (name := " ".join(match[0].split())) in longest_first else "" for match in matches]
    known_names = [name for name in names if name]
    if len(set(known_names)) != len(known_names) or not set(required) <= set(known_names):
        return None
    return Columns(tuple(names), tuple(match.start() for match in matches), tuple(match.end() for match in matches))


def objects(text: str) -> list[dict[str, Any]]:
    """Return the complete JSON objects that start at the beginning of a line; other lines are ignored."""
    result = []
    position = 0
    while start := _OBJECT.search(text, position):
        position = start.end()
        try:
            content, end = _JSON.raw_decode(text, start.start())
        except (ValueError, RecursionError):
            continue
        # If text follows the object's end, one of the object's lines is missing, so values may be at the wrong level.
        if not _CONTINUES.match(text, end):
            result.append(content)
        position = end
    return result


def _without_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        raise ValueError("duplicate key")
    return content


_OBJECT = re.compile(r"^\{", re.MULTILINE)
_CONTINUES = re.compile(r"[^\S\n]*\S|\s*[],}:]")
_JSON = json.JSONDecoder(object_pairs_hook=_without_duplicate_keys, parse_constant=lambda _: None)

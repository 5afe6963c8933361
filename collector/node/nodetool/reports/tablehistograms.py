"""`nodetool tablehistograms`: decaying percentiles of a table's latencies and of the SSTables touched per read."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from collector.model.metric import Aggregation, Kind, Metric, Series
from collector.node.nodetool.reports.report import QUANTILES, Columns, Draft, Report, columns, decimal, shown
from collector.node.selection import is_pattern

_SSTABLES = Metric(
    "cassandra_table_sstables_per_read_decayed",
    Kind.GAUGE,
    "1",
    "Exponentially decaying quantile of the number of SSTables touched per read.",
    ("keyspace", "table", "quantile"),
    across=Aggregation.MAX,
)
METRICS = (_SSTABLES,)
ARGUMENTS = ("tablehistograms",)
_LATENCY = "cassandra_table_operation_decayed_seconds"
FILLS = frozenset({_LATENCY, _SSTABLES.name})


def arguments(keyspace: str, table: str) -> tuple[str, ...]:
    """Return nodetool's arguments for one table; empty unless both keyspace and table are names, not patterns."""
    named = keyspace and table and not is_pattern(keyspace) and not is_pattern(table)
    return (*ARGUMENTS, keyspace, table) if named else ()


_HEADING = re.compile(r"(\w+)/([\w.]+) histograms", re.ASCII)
_OPERATIONS = {"Read Latency": "Read", "Write Latency": "Write"}
_LABELS = (*_OPERATIONS, "SSTables", "Partition Size", "Cell Count")
_UNITS = {"(micros)", "(bytes)"}
_HUNDREDTHS = re.compile(r"[0-9]+\.[0-9]{2}")


@dataclass(frozen=True)
class Histogram:
    """A histogram in a report: its heading, and its cells by row and column."""

    heading: re.Match[str]
    rows: dict[str, dict[str, str]]


def parse(text: str) -> Report:
    """Return the percentiles of each table; tables without recent operations are absent."""
    draft = Draft(text)
    for histogram in histograms(draft, _HEADING, _LABELS):
        keyspace, table = histogram.heading.groups()
        # A name of the form TABLE.INDEX belongs to an index.
        if "." in table:
            continue
        for column, operation in _OPERATIONS.items():
            latencies(draft, histogram, column, (_LATENCY, keyspace, table, operation))
        _sstables(draft, histogram, (keyspace, table))
    return draft.report()


def _sstables(draft: Draft, histogram: Histogram, labels: Sequence[str]) -> None:
    """Add the quantiles of SSTables per read, unless there were no recent reads. A quantile of 0 is valid."""
    for row, quantile in QUANTILES.items():
        cells = histogram.rows.get(row, {})
        if "SSTables" not in cells:
            draft.problem(f"missing {row!r} in column 'SSTables'", histogram.heading[0])
        elif _is_recent(cells.get("Read Latency", "")):
            draft.take(
                (_SSTABLES.name, *labels, quantile), _hundredths, cells["SSTables"], "'SSTables'", histogram.heading[0]
            )


def latencies(draft: Draft, histogram: Histogram, column: str, series: Series) -> None:
    """Add the quantiles of an operation's duration, in microseconds, unless there were no recent operations."""
    heading = histogram.heading[0]
    has_operations = _is_recent(histogram.rows.get("Max", {}).get(column, ""))
    for row, quantile in QUANTILES.items():
        if column not in histogram.rows.get(row, {}):
            draft.problem(f"missing {row!r} in column {column!r}", heading)
        elif has_operations or row == "Max":
            draft.take((*series, quantile), _duration, histogram.rows[row][column], repr(column), heading)


def _is_recent(longest: str) -> bool:
    try:
        return bool(_duration(longest))
    except ValueError:
        return False


def _duration(cell: object) -> float | None:
    # Every operation takes some time, so 0 means that there were no operations.
    return _hundredths(cell) or None


def _hundredths(cell: object) -> float | None:
    if cell == "NaN" or (isinstance(cell, str) and _HUNDREDTHS.fullmatch(cell)):
        return decimal(cell)
    raise ValueError("is not a number with two decimals")


def histograms(draft: Draft, heading: re.Pattern[str], labels: Iterable[str]) -> list[Histogram]:
    """Return a report's well-formed histograms; `heading` matches the line above a histogram."""
    labels = ("Percentile", *labels)
    sections: list[tuple[re.Match[str], list[str]]] = []
    in_section = False
    for line in draft.lines:
        if match := heading.fullmatch(line.strip()):
            sections.append((match, []))
            in_section = True
        elif not line.strip():
            in_section = False
        elif in_section:
            sections[-1][1].append(line)
        elif columns(line, labels, labels[:1]):
            draft.problem("histogram without a heading")
    return [histogram for match, lines in sections if (histogram := _histogram(draft, match, lines, labels))]


def _histogram(draft: Draft, heading: re.Match[str], lines: Sequence[str], labels: Sequence[str]) -> Histogram | None:
    headers = [(header, number) for number, line in enumerate(lines) if (header := columns(line, labels, labels[:1]))]
    units = [line.split() for line in lines if set(line.split()) <= _UNITS]
    if len(headers) != 1 or len(units) != 1:
        draft.problem("histogram without exactly one header and one line of units", heading[0])
        return None
    header, number = headers[0]
    if units[0].count("(micros)") != sum(label.endswith("Latency") for label in header.labels):
        draft.problem("histogram with latencies that are not in microseconds", heading[0])
        return None
    return _with_rows(draft, heading, header, lines[number + 1 :])


def _with_rows(draft: Draft, heading: re.Match[str], header: Columns, lines: Sequence[str]) -> Histogram | None:
    rows: dict[str, dict[str, str]] = {}
    draft.recognised = True
    for line in lines:
        if set(line.split()) <= _UNITS:
            continue
        cells = header.cells(line)
        row = cells.pop("Percentile") if cells else ""
        if cells is None or row not in (*QUANTILES, "Min"):
            draft.problem("unrecognised row", f"{shown(line.split()[0])} of {heading[0]}")
        elif row in rows:
            draft.problem("histogram ignored because of a duplicate row", heading[0])
            return None
        else:
            rows[row] = cells
    return Histogram(heading, rows)

"""`nodetool tablehistograms`: percentiles of what a table did lately, from reservoirs that decay."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from collector.model.metric import Aggregation, Kind, Metric, Series
from collector.nodetool.reports.report import QUANTILES, Columns, Draft, Report, columns, decimal, shown
from collector.sampling.selection import is_pattern

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
FILLS = frozenset(
    {
        "cassandra_table_operation_decayed_seconds",
        "cassandra_table_sstables_per_read_decayed",
    }
)


def arguments(keyspace: str, table: str) -> tuple[str, ...]:
    """Return what to ask for: one table; nothing where none is named."""
    named = keyspace and table and not is_pattern(keyspace) and not is_pattern(table)
    return (*ARGUMENTS, keyspace, table) if named else ()


_LATENCY = "cassandra_table_operation_decayed_seconds"
_HEADING = re.compile(r"(\w+)/([\w.]+) histograms", re.ASCII)
_OPERATIONS = {"Read Latency": "Read", "Write Latency": "Write"}
_LABELS = (*_OPERATIONS, "SSTables", "Partition Size", "Cell Count")
_UNITS = {"(micros)", "(bytes)"}
_HUNDREDTHS = re.compile(r"[0-9]+\.[0-9]{2}")


@dataclass(frozen=True)
class Histogram:
    """One of a report's tables: its heading, and its cells by row and column."""

    heading: re.Match[str]
    rows: dict[str, dict[str, str]]


def parse(text: str) -> Report:
    """Return the percentiles of each table; of one that was neither read nor written lately there are none."""
    draft = Draft(text)
    for found in histograms(draft, _HEADING, _LABELS):
        keyspace, table = found.heading.groups()
        # An index is named behind its table; it is no table.
        if "." in table:
            continue
        for column, operation in _OPERATIONS.items():
            latencies(draft, found, column, (_LATENCY, keyspace, table, operation))
        _sstables(draft, found, (keyspace, table))
    return draft.report()


def _sstables(draft: Draft, found: Histogram, labels: Sequence[str]) -> None:
    """No table for a read is a number, unless there was no read: how long the reads took says which."""
    for row, quantile in QUANTILES.items():
        cells = found.rows.get(row, {})
        if "SSTables" not in cells:
            draft.problem(f"there is no {row!r} of 'SSTables'", found.heading[0])
        elif _lately(cells.get("Read Latency", "")):
            draft.take(
                (_SSTABLES.name, *labels, quantile), _hundredths, cells["SSTables"], "'SSTables'", found.heading[0]
            )


def latencies(draft: Draft, found: Histogram, column: str, series: Series) -> None:
    """Note the quantiles of an operation, in microseconds; none when it did not happen lately."""
    where = found.heading[0]
    lately = _lately(found.rows.get("Max", {}).get(column, ""))
    for row, quantile in QUANTILES.items():
        if column not in found.rows.get(row, {}):
            draft.problem(f"there is no {row!r} of {column!r}", where)
        elif lately or row == "Max":
            draft.take((*series, quantile), _duration, found.rows[row][column], repr(column), where)


def _lately(longest: str) -> bool:
    try:
        return bool(_duration(longest))
    except ValueError:
        return False


def _duration(cell: object) -> float | None:
    # Nothing takes no time: a zero says that there was nothing.
    return _hundredths(cell) or None


def _hundredths(cell: object) -> float | None:
    if cell == "NaN" or (isinstance(cell, str) and _HUNDREDTHS.fullmatch(cell)):
        return decimal(cell)
    raise ValueError("is no number with two decimals")


def histograms(draft: Draft, heading: re.Pattern[str], labels: Iterable[str]) -> list[Histogram]:
    """Return the histograms of a report, those whose form is known; what they are of stands in their headings."""
    labels = ("Percentile", *labels)
    found: list[tuple[re.Match[str], list[str]]] = []
    within = False
    for line in draft.lines:
        if begins := heading.fullmatch(line.strip()):
            found.append((begins, []))
            within = True
        elif not line.strip():
            within = False
        elif within:
            found[-1][1].append(line)
        elif columns(line, labels, labels[:1]):
            draft.problem("a histogram has lost its heading")
    return [known for begins, lines in found if (known := _known(draft, begins, lines, labels))]


def _known(draft: Draft, heading: re.Match[str], lines: Sequence[str], labels: Sequence[str]) -> Histogram | None:
    headers = [(header, number) for number, line in enumerate(lines) if (header := columns(line, labels, labels[:1]))]
    units = [line.split() for line in lines if set(line.split()) <= _UNITS]
    if len(headers) != 1 or len(units) != 1:
        draft.problem("a histogram without its header or its units", heading[0])
        return None
    header, number = headers[0]
    if units[0].count("(micros)") != sum(label.endswith("Latency") for label in header.labels):
        draft.problem("a histogram whose latencies are not all in microseconds", heading[0])
        return None
    return _filled(draft, heading, header, lines[number + 1 :])


def _filled(draft: Draft, heading: re.Match[str], header: Columns, lines: Sequence[str]) -> Histogram | None:
    rows: dict[str, dict[str, str]] = {}
    draft.understood = True
    for line in lines:
        if set(line.split()) <= _UNITS:
            continue
        cells = header.cells(line)
        row = cells.pop("Percentile") if cells else ""
        if cells is None or row not in (*QUANTILES, "Min"):
            draft.problem("a row is not understood", f"{shown(line.split()[0])} of {heading[0]}")
        elif row in rows:
            draft.problem("a histogram has a row twice and is not believed", heading[0])
            return None
        else:
            rows[row] = cells
    return Histogram(heading, rows)

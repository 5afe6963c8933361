"""`nodetool tablestats`: local operations since the node started; sizes, SSTables, partitions and flushes of tables."""

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from collector.model.metric import Aggregation, Kind, Metric, ScrapeInterval, Value
from collector.node.metrics.tables import KEYSPACE_OPERATIONS, KEYSPACE_SECONDS
from collector.node.nodetool.reports.local_operations import OPERATIONS, SECONDS
from collector.node.nodetool.reports.report import Draft, Report, decimal, objects, parted, shown, size, whole
from collector.node.selection import is_pattern

_DECAYED = Metric(
    "cassandra_table_operation_decayed_mean_seconds",
    Kind.GAUGE,
    "seconds",
    "Exponentially decaying mean of the duration of local operations on the table, in seconds.",
    ("keyspace", "table", "operation"),
    scale=1e-3,
    across=Aggregation.MEAN,
)
# Through JMX, each of these values would make the node read its disk, so nodetool alone provides them.
_of_table = partial(
    Metric,
    kind=Kind.GAUGE,
    labels=("keyspace", "table"),
    scrape_interval=ScrapeInterval.SLOW,
    across=Aggregation.SUM,
)
_SNAPSHOTS = _of_table(
    "cassandra_table_snapshots_bytes",
    unit="bytes",
    help="Disk space used only by snapshots, in bytes (reported by nodetool only).",
)
_PARTITIONS = _of_table(
    "cassandra_table_partitions", unit="1", help="Estimated number of partitions (reported by nodetool only)."
)
METRICS = (_DECAYED, _SNAPSHOTS, _PARTITIONS)
ARGUMENTS = ("tablestats", "-F", "json")


def arguments(keyspace: str, table: str) -> tuple[str, ...]:
    """Return nodetool's arguments for one table or keyspace, or for all keyspaces if no keyspace is given by name."""
    if not keyspace or is_pattern(keyspace):
        return ARGUMENTS
    return (*ARGUMENTS, f"{keyspace}.{table}" if table and not is_pattern(table) else keyspace)


_OPERATIONS = ("Read", "Write")
_NAME = re.compile(r"\w+", re.ASCII)
_RULE = re.compile(r"-{4,}")


def _ratio(raw: object) -> float | None:
    number = decimal(raw)
    # nodetool prints -1 for an empty or uncompressed table.
    return number if number is not None and number >= 0 else None


def _milliseconds(raw: object) -> float | None:
    """Return the number before `ms`, or None for NaN. Raises ValueError for other formats."""
    if isinstance(raw, str) and raw.endswith("ms"):
        with suppress(ValueError):
            number = decimal(raw[:-2].rstrip())
            if number is None or number >= 0:
                return number
    raise ValueError("is not a number of milliseconds")


_TABLE: Mapping[str, tuple[tuple[str, ...], Callable[[object], Value | None]]] = {
    "Local read count": (("cassandra_table_operations_total", "Read"), whole),
    "Local write count": (("cassandra_table_operations_total", "Write"), whole),
    "SSTable count": (("cassandra_table_live_sstables",), whole),
    "Pending flushes": (("cassandra_table_pending_flushes",), whole),
    "Space used (live)": (("cassandra_table_live_disk_bytes",), size),
    "Space used (total)": (("cassandra_table_total_disk_bytes",), size),
    "Space used by snapshots (total)": (("cassandra_table_snapshots_bytes",), size),
    "Compacted partition maximum bytes": (("cassandra_table_max_partition_bytes",), whole),
    "Compacted partition mean bytes": (("cassandra_table_mean_partition_bytes",), whole),
    "SSTable Compression Ratio": (("cassandra_table_compression_ratio",), _ratio),
    "Percent repaired": (("cassandra_table_repaired_ratio",), _ratio),
    "Speculative retries": (("cassandra_table_speculative_retries_total",), whole),
    "Number of partitions (estimate)": (("cassandra_table_partitions",), whole),
}
FILLS = frozenset(
    {
        *(metric.name for metric in (*METRICS, OPERATIONS, SECONDS)),
        *(KEYSPACE_OPERATIONS, KEYSPACE_SECONDS),
        *(series[0] for series, _ in _TABLE.values()),
    }
)
_MEANS = {"Local read latency": "Read", "Local write latency": "Write"}
_OF_TABLE = (*_TABLE, *_MEANS)
_OF_KEYSPACE = ("Read Count", "Read Latency", "Write Count", "Write Latency", "Pending Flushes")


@dataclass(frozen=True)
class Section:
    """The values of a keyspace (`table` is "") or a table, keyed by label; a correct report has one value per label."""

    keyspace: str
    table: str
    values: dict[str, list[object]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.keyspace}.{self.table}" if self.table else self.keyspace


def parse(text: str) -> Report:
    """Return the values of every keyspace and table from JSON or text, but not those of indexes."""
    draft = Draft(text)
    reports = [content for content in objects(text) if "total_number_of_tables" in content]
    if len(reports) == 1:
        # Forget any problems with the text around the JSON object, such as a truncated last line.
        draft = Draft("")
        sections = _json(draft, reports[0])
    else:
        sections, is_complete = _text(draft)
        if not is_complete:
            draft.problem("truncated within a keyspace")
    for section in sections:
        _take(draft, section)
    return draft.report()


def _take(draft: Draft, section: Section) -> None:
    labels = _OF_TABLE if section.table else _OF_KEYSPACE
    if any(len(values) > 1 for values in section.values.values()):
        # A heading is evidently missing, so two tables or keyspaces look like one.
        draft.problem("duplicate label; all values are ignored", section.name)
        return
    values_by_label = {label: values[0] for label, values in section.values.items() if label in labels}
    for label in labels:
        if label not in values_by_label:
            draft.problem(f"missing {label!r}", section.name)
    if section.table:
        _table(draft, section, values_by_label)
    else:
        _keyspace(draft, section, values_by_label)


def _table(draft: Draft, section: Section, values: Mapping[str, object]) -> None:
    names = (section.keyspace, section.table)
    for label, ((name, *labels), convert) in _TABLE.items():
        if label in values:
            draft.take((name, *names, *labels), convert, values[label], label, section.name)
    for label, operation in _MEANS.items():
        # If there were no operations, there is no mean, so ignore the value that nodetool prints.
        if label in values and values.get(f"Local {operation.lower()} count") not in (0, "0", None):
            draft.take((_DECAYED.name, *names, operation), _milliseconds, values[label], label, section.name)


def _keyspace(draft: Draft, section: Section, values: Mapping[str, object]) -> None:
    for operation in _OPERATIONS:
        series = (section.keyspace, operation)
        count, mean = values.get(f"{operation} Count"), values.get(f"{operation} Latency")
        if count is not None:
            draft.take((KEYSPACE_OPERATIONS, *series), whole, count, f"{operation} Count", section.name)
            draft.take((KEYSPACE_SECONDS, *series), _microseconds, (count, mean), f"{operation} Latency", section.name)


def _microseconds(raw: object) -> int:
    """Return the operations' total time in microseconds: their count times their mean.

    The means of keyspaces cover all operations since the node started, unlike those of tables. Raises ValueError for
    malformed values, and for a mean that does not fit the count.
    """
    count, mean = raw if isinstance(raw, tuple) else (raw, None)
    number = whole(count)
    if number == 0:
        return 0
    if (mean_ms := _milliseconds(mean)) is None:
        raise ValueError("is missing, although the count is not 0")
    total = mean_ms * number * 1000
    # Cassandra computes the mean from a whole number of microseconds. If the total is not close to a whole number, the
    # mean and the count do not cover the same operations.
    if abs(total - round(total)) > 0.001 + total * 1e-15:
        raise ValueError("is not the mean of all operations since the node started")
    return round(total)


def _json(draft: Draft, report: Mapping[str, Any]) -> list[Section]:
    sections = []
    for keyspace, figures in report.items():
        tables = figures.get("tables") if isinstance(figures, dict) else None
        if isinstance(tables, dict) and _NAME.fullmatch(keyspace):
            sections.append(_section(keyspace, "", figures, _OF_KEYSPACE))
            for table, table_figures in tables.items():
                if _NAME.fullmatch(table) and isinstance(table_figures, dict):
                    sections.append(_section(keyspace, table, table_figures, _OF_TABLE))
                elif "." not in table:
                    draft.problem("unexpected entry among the tables", f"{keyspace}.{table}")
        elif keyspace != "total_number_of_tables":
            draft.problem("keyspace without tables", keyspace)
    draft.recognised = True
    return sections


def _section(keyspace: str, table: str, figures: Mapping[str, object], labels: Iterable[str]) -> Section:
    values: dict[str, list[object]] = {}
    for label in labels:
        key = "_".join(re.findall(r"\w+", label)).lower()
        if f"{key}_ms" in figures:
            mean = figures[f"{key}_ms"]
            values[label] = ["NaN ms" if mean is None else f"{mean} ms"]
        elif key in figures:
            values[label] = [figures[key]]
    return Section(keyspace, table, values)


def _text(draft: Draft) -> tuple[list[Section], bool]:
    """Return the sections of a text report, and whether the last keyspace is complete."""
    sections: list[Section] = []
    current: Section | None = None
    keyspace, ended = "", True
    for line in draft.lines:
        label, value = parted(line)
        if label in ("Keyspace", "Table", "Table (index)"):
            draft.recognised, ended = True, False
            if label == "Keyspace":
                keyspace = value if _NAME.fullmatch(value) else ""
            if not keyspace:
                draft.problem("heading without a keyspace", shown(value))
            current = Section(keyspace, "" if label == "Keyspace" else value)
            sections.append(current)
        elif not line.strip():
            current = None
        elif _RULE.fullmatch(line.strip()):
            current, keyspace, ended = None, "", True
        elif label in _OF_KEYSPACE and (current is None or current.table):
            # The next keyspace's heading is missing, so the following lines do not belong to the previous keyspace.
            draft.problem("keyspace values without a heading")
            sections = [section for section in sections if section is not current]
            current, keyspace = None, ""
        elif label in _OF_KEYSPACE or label in _OF_TABLE:
            if current is None or (label in _OF_TABLE and not current.table):
                draft.problem("lines without a heading", shown(label))
            else:
                current.values.setdefault(label, []).append(value)
    # A name that no table can have is that of an index.
    named = (section for section in sections if section.keyspace)
    return [section for section in named if _NAME.fullmatch(section.table or section.keyspace)], ended

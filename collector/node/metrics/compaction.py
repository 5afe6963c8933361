"""Compactions: pending, completed and running, with their progress."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from collector.model.mbean import METRICS, Many, counter, properties, slow_total, text, total
from collector.model.metric import WideColumn
from collector.node.metrics.tables import is_system_keyspace
from collector.printable import names_text, shortened, single_line

_BEAN = METRICS + "type=Compaction,name="
_MANAGER = "org.apache.cassandra.db:type=CompactionManager"
_LABELS = ("id", "keyspace", "table", "type")


def _amounts(compactions: Any, key: str) -> Many:
    return [(_label_values(compaction), int(compaction[key])) for compaction in compactions]


def _label_values(compaction: Mapping[str, Any]) -> tuple[str, ...]:
    # Cassandra 4.0 and later provide `compactionId`. The `id` in 3.11 identifies only the keyspace and table.
    compaction_id = compaction.get("compactionId") or compaction.get("id") or ""
    return compaction_id, compaction["keyspace"] or "", compaction["columnfamily"] or "", compaction["taskType"]


def _by_table(pending: Any) -> Many:
    return [((keyspace, table), number) for keyspace, tables in pending.items() for table, number in tables.items()]


_MAX_TEXT_CHARS, _SHOWN_TABLES = 300, 3


def _strategies(tables: Any) -> Many:
    """Yield one text with the parameters of compaction and the tables that have them, without system keyspaces."""
    by_parameters: dict[str, list[str]] = {}
    for name, attributes in tables.items():
        labels = properties(name)
        if not is_system_keyspace(labels["keyspace"]):
            parameters = dict(attributes[_PARAMETERS])
            strategy = parameters.pop("class").rpartition(".")[2]
            text = " ".join([strategy, *(f"{key}={value}" for key, value in sorted(parameters.items()))])
            by_parameters.setdefault(text, []).append(f"{labels['keyspace']}.{labels['table']}")
    texts = []
    for text, names in sorted(by_parameters.items()):
        texts.append(f"{text} ({names_text(sorted(names), _SHOWN_TABLES)})")
    if texts:
        yield (), shortened(single_line("; ".join(texts)), _MAX_TEXT_CHARS)


_PARAMETERS = "CompactionParameters"
COMPACTION = text(
    "cassandra_compaction_parameters",
    "Parameters of compaction, and the tables that have them.",
    # One request for all tables.
    "org.apache.cassandra.db:type=Tables,*",
    _PARAMETERS,
    many=_strategies,
)

BEANS = (
    COMPACTION,
    total(
        "cassandra_compaction_pending",
        "Estimated number of pending compactions.",
        _BEAN + "PendingTasks",
        columns=(WideColumn("compactions_pending", "CmpPnd", "Estimated number of pending compactions"),),
    ),
    counter(
        "cassandra_compaction_completed_total",
        "Number of completed compaction tasks.",
        _BEAN + "CompletedTasks",
        "Value",
    ),
    counter("cassandra_compactions_total", "Number of completed compactions.", _BEAN + "TotalCompactionsCompleted"),
    counter(
        "cassandra_compaction_bytes_total",
        "Number of bytes read by compactions.",
        _BEAN + "BytesCompacted",
        unit="bytes",
        columns=(
            WideColumn("compaction_mb_per_s", "CmpMB/s", "Read by compactions, MiB/s", scale=1 / 2**20, digits=2),
        ),
    ),
    slow_total(
        "cassandra_compaction_pending_by_table",
        "Estimated number of pending compactions of the table.",
        _BEAN + "PendingTasksByTableName",
        labels=("keyspace", "table"),
        many=_by_table,
    ),
    total(
        "cassandra_compaction_progress",
        "Completed work of a running compaction, in its own unit (usually bytes).",
        _MANAGER,
        "Compactions",
        labels=_LABELS,
        many=partial(_amounts, key="completed"),
    ),
    total(
        "cassandra_compaction_size",
        "Total work of a running compaction, in its own unit (usually bytes).",
        _MANAGER,
        "Compactions",
        labels=_LABELS,
        many=partial(_amounts, key="total"),
    ),
)

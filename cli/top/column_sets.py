"""The column sets that the keys 1 to 8 select, and the columns that are always read."""

from collections.abc import Iterable
from dataclasses import dataclass

from cli.top.view_state import ViewState
from collector.node.metrics.requests import OPERATIONS
from exporters.live.frame import ALL
from exporters.live.live_columns import COLUMN_INDEX, COLUMNS
from exporters.live.live_frames import Wanted
from exporters.rows.columns import Column
from exporters.rows.operation_columns import TOTAL_RATE


@dataclass(frozen=True)
class ColumnSet:
    """A named set of columns; nodes with equal severity are ranked by their maximum value in the `worst` columns."""

    name: str
    columns: tuple[str, ...]
    worst: tuple[str, ...]

    @property
    def is_tables(self) -> bool:
        """Whether the set shows tables instead of nodes."""
        return not self.columns


_READS = tuple(f"read_{statistic}_ms" for statistic in ("mean", "p50", "p95", "p99", "max"))
_WRITES = tuple(f"write_{statistic}_ms" for statistic in ("mean", "p50", "p95", "p99", "max"))
_CPU = ("cpu_busy_pct", "cpu_system_pct", "cpu_iowait_pct")
_TAILS = ("read_p99_ms", "write_p99_ms")
_REQUESTS = ("reads_per_s", "read_mean_ms", "read_p99_ms", "writes_per_s", "write_mean_ms", "write_p99_ms")
_FAULTS = (
    "read_timeouts_per_s",
    "write_timeouts_per_s",
    "unavailables_per_s",
    "dropped_reads_per_s",
    "dropped_mutations_per_s",
    "peers_unreachable",
)
_OTHERS = tuple(
    name
    for operation in OPERATIONS
    if not operation.is_usual
    for name in (f"{operation.plural}_per_s", f"{operation.word}_p99_ms")
)
BASE = (
    *_REQUESTS,
    *_CPU,
    "cpu_user_pct",
    "gc_pct",
    "compactions_pending",
    *_FAULTS,
    "timeouts_per_s",
    TOTAL_RATE,
    *_OTHERS,
)
"""Columns that are always read, because the lines above the table and the node severities need them."""

SETS = (
    ColumnSet("requests", (*_REQUESTS, *_CPU, "gc_pct", "compactions_pending", *_FAULTS), _TAILS),
    ColumnSet("latency", ("reads_per_s", *_READS, "writes_per_s", *_WRITES), _TAILS),
    ColumnSet(
        "compaction",
        (
            "compactions_pending",
            "compaction_mb_per_s",
            "flush_pending",
            "writes_per_s",
            "disk_read_mb_per_s",
            "disk_write_mb_per_s",
            "disk_util_pct",
            "cpu_iowait_pct",
            "dirty_mb",
        ),
        ("compactions_pending",),
    ),
    ColumnSet(
        "JVM",
        (
            "gc_pct",
            "heap_used_mb",
            "heap_pct",
            "jvm_cpu_pct",
            "cpu_user_pct",
            "cpu_nice_pct",
            "native_connections",
            "read_stage_active",
            "read_stage_pending",
            "mutation_stage_active",
            "mutation_stage_pending",
            "native_transport_pending",
            "native_transport_blocked",
            "flush_pending",
            "process_resident_mb",
        ),
        ("gc_pct",),
    ),
    ColumnSet(
        "disk",
        (
            "disk_reads_per_s",
            "disk_writes_per_s",
            "disk_read_mb_per_s",
            "disk_write_mb_per_s",
            "disk_read_await_ms",
            "disk_write_await_ms",
            "disk_queue",
            "disk_util_pct",
            "cpu_iowait_pct",
            "pressure_io_pct",
            "major_faults_per_s",
            "page_cache_mb",
            "memory_available_mb",
        ),
        ("disk_read_await_ms", "disk_write_await_ms"),
    ),
    ColumnSet(
        "network",
        (
            "net_rx_kbit_per_s",
            "net_tx_kbit_per_s",
            "net_rx_packets_per_s",
            "net_tx_packets_per_s",
            "net_rx_dropped_per_s",
            "net_tx_dropped_per_s",
            "tcp_retransmits_per_s",
            "dropped_reads_per_s",
            "dropped_mutations_per_s",
            "hints_per_s",
            "native_connections",
            "peers_unreachable",
        ),
        ("tcp_retransmits_per_s", "net_rx_dropped_per_s", "net_tx_dropped_per_s"),
    ),
    ColumnSet("tables", (), _TAILS),
    ColumnSet(
        "operations",
        (
            *(TOTAL_RATE, "reads_per_s", "writes_per_s", *_OTHERS),
            *(f"{operation.word}_errors_per_s" for operation in OPERATIONS),
            *("cas_write_conditions_not_met_per_s", "cas_write_contended_per_s"),
        ),
        tuple(f"{operation.word}_p99_ms" for operation in OPERATIONS),
    ),
)


def set_of(view: ViewState) -> ColumnSet:
    """Return the visible column set: the columns chosen by name, or one of `SETS`."""
    return ColumnSet("columns", view.picked, _TAILS) if view.picked else SETS[view.chosen]


def columns(chosen: ColumnSet) -> list[Column]:
    return [COLUMNS[COLUMN_INDEX[name]] for name in chosen.columns]


def wanted(number: int, more: Iterable[str] = (), node: int | None = None, *, groups: bool = False) -> Wanted:
    """Return a request for a column set and the additional columns `more`.

    Unless `node` is None, the node's details are requested as well, and with `groups` the data centres and racks.
    """
    chosen = SETS[number]
    names = {*BASE, *chosen.columns, *(name for name in more if name in COLUMN_INDEX)}
    return Wanted(frozenset(names), ALL if chosen.is_tables else None, node, groups)

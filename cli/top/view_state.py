"""The view state: everything on the screen that the user controls, including column sets and what is saved of it.

The columns and sort order are saved if possible, and validated when they are read.
"""

import contextlib
import json
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collector.file_access import read_whole, replace_file
from collector.node.metrics.requests import OPERATIONS
from exporters.live.frame import ALL, Frame, Wanted
from exporters.live.live_columns import COLUMN_INDEX, COLUMNS
from exporters.rows.columns import Column
from exporters.rows.operation_columns import TOTAL_RATE

_READS = tuple(f"read_{statistic}_ms" for statistic in ("mean", "p50", "p95", "p99", "max"))
_WRITES = tuple(f"write_{statistic}_ms" for statistic in ("mean", "p50", "p95", "p99", "max"))
_CPU = ("cpu_busy_pct", "cpu_system_pct", "cpu_iowait_pct")
_TAILS = ("read_p99_ms", "write_p99_ms")
_REQUESTS = ("reads_per_s", "read_mean_ms", "read_p99_ms", "writes_per_s", "write_mean_ms", "write_p99_ms")
_FAULTS = (
    *("read_timeouts_per_s", "write_timeouts_per_s", "unavailables_per_s"),
    *("dropped_reads_per_s", "dropped_mutations_per_s", "peers_unreachable"),
)
_OTHERS = tuple(
    name
    for operation in OPERATIONS
    if not operation.is_usual
    for name in (f"{operation.plural}_per_s", f"{operation.word}_p99_ms")
)
BASE = (
    *(*_REQUESTS, *_CPU, "cpu_user_pct", "gc_pct", "compactions_pending"),
    *(*_FAULTS, "timeouts_per_s", TOTAL_RATE, *_OTHERS),
)
"""Columns that are always read, because the lines above the table and the node severities need them."""
MAX_BYTES = 4096
MAX_COLUMNS = 40


@dataclass(frozen=True)
class ViewState:
    """The view state of `casstat top`.

    chosen        index of the selected column set.
    picked        names of the columns shown instead of a set; () for none.
    sort          column to sort by; "" for worst first.
    at_s          time of the selected tick, in seconds since the epoch; None for the newest one.
    playing       whether a recording is advancing, by `speed` seconds per second.
    cursor        index of the selected node; None for the node in the first row.
    first         index of the first visible row, page line or node column.
    node          index of the node whose page is open; None for none.
    grouped       whether to show data centres and racks; None to show them if there are more nodes than lines.
    group         location of the group whose nodes are shown; None for all nodes.
    group_cursor  location of the selected group; None for the one in the first row.
    prompt        the open prompt: "/" for a filter, "s" for a column, "S" for a time; "" for none. `typed` is its text.
    message       message in the footer; "" for none.
    """

    chosen: int = 0
    picked: tuple[str, ...] = ()
    sort: str = ""
    reverse: bool = False
    filter: str = ""
    inverse: bool = False
    faults: bool = False
    transposed: bool = False
    metric: str = ""
    at_s: float | None = None
    playing: bool = False
    speed: float = 1.0
    cursor: int | None = None
    first: int = 0
    node: int | None = None
    grouped: bool | None = None
    group: str | None = None
    group_cursor: str | None = None
    help: bool = False
    prompt: str = ""
    typed: str = ""
    message: str = ""


def position(frames: Sequence[Frame], at_s: float | None) -> int:
    """Return the index of the last frame not later than `at_s`, or 0 if all are later; -1 without frames."""
    if at_s is None:
        return len(frames) - 1
    index = bisect_right(frames, at_s, key=lambda frame: frame.time_s) - 1
    return max(index, 0) if frames else -1


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


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


SETS = (
    ColumnSet("requests", (*_REQUESTS, *_CPU, "gc_pct", "compactions_pending", *_FAULTS), _TAILS),
    ColumnSet("latency", ("reads_per_s", *_READS, "writes_per_s", *_WRITES), _TAILS),
    ColumnSet(
        "compaction",
        _words(
            "compactions_pending compaction_mb_per_s flush_pending writes_per_s disk_read_mb_per_s disk_write_mb_per_s"
            " disk_util_pct cpu_iowait_pct dirty_mb"
        ),
        ("compactions_pending",),
    ),
    ColumnSet(
        "JVM",
        _words(
            "gc_pct heap_used_mb heap_pct jvm_cpu_pct cpu_user_pct cpu_nice_pct native_connections read_stage_active"
            " read_stage_pending mutation_stage_active mutation_stage_pending native_transport_pending"
            " native_transport_blocked flush_pending process_resident_mb"
        ),
        ("gc_pct",),
    ),
    ColumnSet(
        "disk",
        _words(
            "disk_reads_per_s disk_writes_per_s disk_read_mb_per_s disk_write_mb_per_s disk_read_await_ms"
            " disk_write_await_ms disk_queue disk_util_pct cpu_iowait_pct pressure_io_pct major_faults_per_s"
            " page_cache_mb memory_available_mb"
        ),
        ("disk_read_await_ms", "disk_write_await_ms"),
    ),
    ColumnSet(
        "network",
        _words(
            "net_rx_kbit_per_s net_tx_kbit_per_s net_rx_packets_per_s net_tx_packets_per_s net_rx_dropped_per_s"
            " net_tx_dropped_per_s tcp_retransmits_per_s dropped_reads_per_s dropped_mutations_per_s hints_per_s"
            " native_connections peers_unreachable"
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


def state_path(environ: Mapping[str, str]) -> Path | None:
    """Return the path of the state file, or None if neither $XDG_STATE_HOME nor $HOME is an absolute path."""
    folder = environ.get("XDG_STATE_HOME", "")
    if folder.startswith("/"):
        return Path(folder) / "casstat" / "top.json"
    home = environ.get("HOME", "")
    return Path(home) / ".local" / "state" / "casstat" / "top.json" if home.startswith("/") else None


def remembered(path: Path | None) -> ViewState:
    """Return the saved columns and sort order; anything missing or invalid is replaced by its default."""
    content = _content(path)
    sets = {column_set.name: index for index, column_set in enumerate(SETS)}
    chosen, sort, columns = content.get("set"), content.get("sort"), content.get("columns")
    names = columns[:MAX_COLUMNS] if isinstance(columns, list) else []
    return ViewState(
        chosen=sets.get(chosen, 0) if isinstance(chosen, str) else 0,
        picked=tuple(dict.fromkeys(name for name in names if isinstance(name, str) and name in COLUMN_INDEX)),
        sort=sort if isinstance(sort, str) and (sort == "node" or sort in COLUMN_INDEX) else "",
        reverse=content.get("reverse") is True,
    )


def remember(path: Path | None, view: ViewState) -> None:
    """Save the columns and the sort order; errors are ignored."""
    if path is None:
        return
    content = {"set": SETS[view.chosen].name, "columns": view.picked, "sort": view.sort, "reverse": view.reverse}
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        replace_file(path, json.dumps(content).encode() + b"\n")


def _content(path: Path | None) -> Mapping[str, Any]:
    """Return the JSON object in the file; an empty one if the file is missing, unreadable or invalid."""
    try:
        content = json.loads(read_whole(path, MAX_BYTES)) if path else {}
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}

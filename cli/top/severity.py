"""The severity of values and nodes, and the display order of nodes."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

from cli.top.column_sets import BASE, set_of
from cli.top.view_state import ViewState
from collector.live.cluster_interval import State
from dashboards.thresholds import THRESHOLDS, Severity
from exporters.live.frame import Frame, NodeFrame, locations_of
from exporters.live.live_columns import COLUMN_INDEX, COLUMNS, SUMMED, Cells, value

MS, PCT = 1000, 100
# Maps each column that has a severity to its signal in `dashboards.thresholds`, and to the factor that converts the
# signal's unit to the column's unit.
SIGNALS = {
    "read_p99_ms": ("read_p99", MS),
    "write_p99_ms": ("write_p99", MS),
    "read_timeouts_per_s": ("timeouts", 1),
    "write_timeouts_per_s": ("timeouts", 1),
    "timeouts_per_s": ("timeouts", 1),
    "unavailables_per_s": ("unavailables", 1),
    "dropped_reads_per_s": ("dropped", 1),
    "dropped_mutations_per_s": ("dropped", 1),
    "hints_per_s": ("hints", 1),
    "peers_unreachable": ("nodes_unreachable", 1),
    "read_stage_pending": ("reads_pending", 1),
    "mutation_stage_pending": ("mutations_pending", 1),
    "native_transport_pending": ("requests_pending", 1),
    "native_transport_blocked": ("pools_blocked", 1),
    "compactions_pending": ("compactions_pending", 1),
    "flush_pending": ("flushes_pending", 1),
    "gc_pct": ("gc_pause_share", PCT),
    "heap_pct": ("heap_share", PCT),
    "cpu_iowait_pct": ("cpu_iowait", PCT),
    "disk_util_pct": ("disk_util", PCT),
}
# Columns whose cluster value is a sum; thresholds for a single node do not apply to it.
OF_NODES = frozenset(column.name for column in COLUMNS if len(column.needs) == 1 and column.needs <= SUMMED)
# The columns that are always read and have a severity: index, threshold and factor.
_RANKED = [(COLUMN_INDEX[name], THRESHOLDS[SIGNALS[name][0]], SIGNALS[name][1]) for name in BASE if name in SIGNALS]
_OF_STATE = {State.UP: 0, State.NEW: 3, State.CHANGING: 4, State.SILENT: 5, State.GONE: 6}

LEVEL_STYLES = ("", "warn", "bad")
"""The styles of values, indexed by `Severity`."""


def level(name: str, number: float | None) -> Severity:
    """Return the severity of a column's value; OK if the value is absent or the column has no thresholds."""
    if number is None or name not in SIGNALS:
        return Severity.OK
    signal, scale = SIGNALS[name]
    return THRESHOLDS[signal].severity(number / scale)


def cluster_level(name: str, number: float | None) -> Severity:
    """Return the severity of a value in the cluster's row."""
    return Severity.OK if name in OF_NODES else level(name, number)


def worst_level(cells: Cells) -> Severity:
    """Return the highest severity of the values in the columns that are always read."""
    # Comparisons with NaN, which stands for an absent value, are false.
    return max(threshold.severity(cells[index] / factor) for index, threshold, factor in _RANKED)


def severity(node: NodeFrame) -> int:
    """Return the rank of a node's worst problem: 0 for no problem, higher for worse ones."""
    return max(_OF_STATE[node.state], worst_level(node.cells) if node.state is State.UP else 0)


def order(frame: Frame, view: ViewState) -> list[int]:
    """Return the indices of the visible nodes, either worst first or sorted by the chosen column.

    Nodes without a value in the sort column come last.
    """
    visible = [index for index, node in enumerate(frame.nodes) if _is_shown(node, view)]
    sign = 1 if view.reverse else -1
    if view.sort == "node":
        return sorted(visible, key=lambda index: frame.nodes[index].name, reverse=view.reverse)
    if view.sort in COLUMN_INDEX:
        column = COLUMN_INDEX[view.sort]
        return sorted(
            visible, key=lambda index: by_values(frame.nodes[index].name, (frame.nodes[index].cells[column],), sign)
        )
    columns = [COLUMN_INDEX[name] for name in set_of(view).worst]
    return sorted(
        visible,
        key=lambda index: (
            sign * severity(frame.nodes[index]),
            *by_values(frame.nodes[index].name, [frame.nodes[index].cells[c] for c in columns], sign),
        ),
    )


def by_values(name: str, values: Sequence[float], sign: int) -> tuple[bool, float, str]:
    """Return a sort key: by the largest value, absent ones last, then by name; `sign` is -1 to sort descending."""
    most = max((number for number in values if number == number), default=None)
    return most is None, sign * (most or 0.0), name


def _is_shown(node: NodeFrame, view: ViewState) -> bool:
    if view.faults and not severity(node):
        return False
    if view.group is not None and view.group not in locations_of(node.location):
        return False
    if not view.filter:
        return True
    words = f"{node.name} {node.location} {node.state.value}".lower()
    wanted = view.filter.lower()
    fits = fnmatchcase(words, f"*{wanted}*") if any(letter in wanted for letter in "*?") else wanted in words
    return fits is not view.inverse


def worst(frame: Frame, name: str) -> NodeFrame | None:
    """Return the node with the maximum value in a column; None if all values are absent or 0."""
    known = [(number, node) for node in frame.nodes if (number := value(node.cells, name)) is not None]
    most, node = max(known, key=lambda pair: pair[0], default=(0.0, None))
    return node if most else None

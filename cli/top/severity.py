"""The severity of figures and of nodes, and the order in which nodes are shown."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

from cli.top.column_sets import BASE, set_of
from cli.top.view_state import ViewState
from collector.cluster.live.cluster_interval import State
from dashboards.thresholds import THRESHOLDS, Severity
from exporters.live.frame import Frame, NodeFrame
from exporters.live.live_columns import COLUMNS, PLACES, SUMMED, Cells, value

MS, PCT = 1000, 100
# The columns that have a severity: the row of `dashboards.thresholds`, and how many of the column's units are one of
# the row's.
SIGNALS = {
    "read_p99_ms": ("read_p99", MS),
    "write_p99_ms": ("write_p99", MS),
    "read_timeouts_per_s": ("timeouts", 1),
    "write_timeouts_per_s": ("timeouts", 1),
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
    "gc_pct": ("gc_share", PCT),
    "heap_pct": ("heap_share", PCT),
    "cpu_iowait_pct": ("cpu_iowait", PCT),
    "disk_util_pct": ("disk_util", PCT),
}
# Amounts that add up across nodes: what is much for one node is not much for all of them together.
OF_NODES = frozenset(column.name for column in COLUMNS if len(column.needs) == 1 and column.needs <= SUMMED)
_OF_STATE = {State.UP: 0, State.NEW: 3, State.CHANGING: 4, State.SILENT: 5, State.GONE: 6}


def level(name: str, number: float | None) -> Severity:
    """Return how bad a figure is."""
    if number is None or name not in SIGNALS:
        return Severity.OK
    signal, scale = SIGNALS[name]
    return THRESHOLDS[signal].severity(number / scale)


def cluster_level(name: str, number: float | None) -> Severity:
    """Return how bad a figure of the whole cluster is."""
    return Severity.OK if name in OF_NODES else level(name, number)


def worst_level(cells: Cells) -> Severity:
    """Return how bad the worst of a node's figures is, of those that are always read."""
    return max(level(name, value(cells, name)) for name in BASE)


def severity(node: NodeFrame) -> int:
    """Return how bad a node is off, the higher the worse; 0 when all is well."""
    return max(_OF_STATE[node.state], worst_level(node.cells) if node.state is State.UP else 0)


def order(frame: Frame, look: ViewState) -> list[int]:
    """Return the places of the nodes to be shown, in their order: the worst first, or by the column that was chosen.

    Nodes of which that is not known come last.
    """
    shown = [place for place, node in enumerate(frame.nodes) if _is_shown(node, look)]
    if look.sort == "node":
        return sorted(shown, key=lambda place: frame.nodes[place].name, reverse=look.reverse)
    if look.sort in PLACES:
        column = PLACES[look.sort]
        sign = 1 if look.reverse else -1
        return sorted(shown, key=lambda p: _key(frame.nodes[p], (frame.nodes[p].cells[column],), sign))
    places = [PLACES[name] for name in set_of(look).worst]
    ranked = sorted(
        shown,
        key=lambda p: (-severity(frame.nodes[p]), *_key(frame.nodes[p], [frame.nodes[p].cells[c] for c in places], -1)),
    )
    return ranked[::-1] if look.reverse else ranked


def _key(node: NodeFrame, found: Sequence[float], sign: int) -> tuple[bool, float, str]:
    most = max((number for number in found if number == number), default=None)
    return most is None, sign * (most or 0.0), node.name


def _is_shown(node: NodeFrame, look: ViewState) -> bool:
    if look.faults and not severity(node):
        return False
    if not look.filter:
        return True
    words = f"{node.name} {node.place} {node.state.value}".lower()
    wanted = look.filter.lower()
    fits = fnmatchcase(words, f"*{wanted}*") if any(letter in wanted for letter in "*?") else wanted in words
    return fits is not look.inverse


def worst(frame: Frame, name: str) -> NodeFrame | None:
    """Return the node whose figure is the greatest; None when nobody's is known, or all are 0."""
    known = [(number, node) for node in frame.nodes if (number := value(node.cells, name)) is not None]
    most, node = max(known, key=lambda each: each[0], default=(0.0, None))
    return node if most else None

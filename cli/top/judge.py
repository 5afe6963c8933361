"""Which figures are a fault, how bad a node is off, and in what order nodes are shown."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

from cli.top.look import Look
from cli.top.sets import BASE, SETS
from exporters.live.columns import PLACES, Cells, value
from exporters.live.frame import Frame, NodeFrame, State

# From where on a figure is worth a look, and from where on it is bad.
LIMITS = {
    "read_p99_ms": (100.0, 500.0),
    "write_p99_ms": (50.0, 250.0),
    "read_timeouts_per_s": (1e-9, 5.0),
    "write_timeouts_per_s": (1e-9, 5.0),
    "unavailables_per_s": (1e-9, 1e-9),
    "dropped_reads_per_s": (1e-9, 10.0),
    "dropped_mutations_per_s": (1e-9, 10.0),
    "peers_unreachable": (1.0, 1.0),
    "compactions_pending": (30.0, 100.0),
    "gc_pct": (10.0, 30.0),
    "cpu_iowait_pct": (30.0, 60.0),
    "heap_pct": (90.0, 97.0),
    "native_transport_blocked": (1.0, 10.0),
    "disk_util_pct": (90.0, 101.0),
    "flush_pending": (5.0, 20.0),
}
# What of these is much for a node is not for the sum of many.
OF_NODES = frozenset({"compactions_pending", "flush_pending", "native_transport_blocked"})
FINE, WORTH, BAD = 0, 1, 2
_OF_STATE = {State.UP: 0, State.NEW: 3, State.CHANGING: 4, State.SILENT: 5, State.GONE: 6}


def level(name: str, number: float | None) -> int:
    """Return how bad a figure is."""
    if number is None or name not in LIMITS:
        return FINE
    worth, bad = LIMITS[name]
    return BAD if number >= bad else WORTH if number >= worth else FINE


def cluster_level(name: str, number: float | None) -> int:
    """Return how bad a figure of the whole cluster is."""
    return FINE if name in OF_NODES else level(name, number)


def worst_level(cells: Cells) -> int:
    """Return how bad the worst of a node's figures is, of those that are always read."""
    return max(level(name, value(cells, name)) for name in BASE)


def severity(node: NodeFrame) -> int:
    """Return how bad a node is off, the higher the worse; 0 when all is well."""
    return max(_OF_STATE[node.state], worst_level(node.cells) if node.state is State.UP else 0)


def order(frame: Frame, look: Look) -> list[int]:
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
    places = [PLACES[name] for name in SETS[look.chosen].worst]
    ranked = sorted(
        shown,
        key=lambda p: (-severity(frame.nodes[p]), *_key(frame.nodes[p], [frame.nodes[p].cells[c] for c in places], -1)),
    )
    return ranked[::-1] if look.reverse else ranked


def _key(node: NodeFrame, found: Sequence[float], sign: int) -> tuple[bool, float, str]:
    most = max((number for number in found if number == number), default=None)
    return most is None, sign * (most or 0.0), node.name


def _is_shown(node: NodeFrame, look: Look) -> bool:
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

"""What the screen shows, and in which order: input of rendering, severity, data centres and racks, lines of parts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from fnmatch import fnmatchcase
from functools import cached_property

from cli.top.styled_text import FINE, Marks, clean
from cli.top.view_state import BASE, ViewState, position, set_of
from collector.live.cluster_interval import State
from dashboards.thresholds import THRESHOLDS, Severity
from exporters.live.frame import Frame, GroupFrame, NodeFrame, locations_of
from exporters.live.live_columns import COLUMN_INDEX, COLUMNS, SUMMED, Cells, other_operations, value

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
# Pairs of a minimum screen height and the number of lines for events, including their heading.
EVENTS = ((60, 10), (40, 7), (24, 4), (20, 3), (12, 1))
# Pairs of a minimum screen height and the number of lines for the cluster's values.
SUMMARY = ((18, 3), (14, 2), (10, 1))
TABLE_HEAD = 2
"""Number of table lines above the nodes: the header and the cluster's row."""


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

    def key(index: int) -> tuple[object, ...]:
        node = frame.nodes[index]
        return _rank(view, node.name, node.cells, lambda: severity(node))

    return sorted(visible, key=key, reverse=view.sort == "node" and view.reverse)


def _rank(view: ViewState, name: str, cells: Cells, severity_of: Callable[[], int]) -> tuple[object, ...]:
    """Return the sort key of a node or group: its name, its value in a column, or its severity and worst value.

    The largest value comes first or, in reverse order, the smallest; absent ones come last, and equal ones by name.
    Names are not in reverse order.
    """
    if view.sort == "node":
        return (name,)
    sign = 1 if view.reverse else -1
    columns = (view.sort,) if view.sort in COLUMN_INDEX else set_of(view).worst
    known = [number for column in columns if (number := cells[COLUMN_INDEX[column]]) == number]
    by_values = (not known, sign * max(known, default=0.0), name)
    return by_values if view.sort in COLUMN_INDEX else (sign * severity_of(), *by_values)


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


@dataclass(frozen=True)
class RenderContext:
    """Frames, view state, screen size and symbols.

    own     CPU and memory use of casstat top itself, as text.
    source  "live" or "recording".
    """

    frames: Sequence[Frame]
    view: ViewState
    width: int
    height: int
    marks: Marks = FINE
    own: str = ""
    source: str = "live"

    @property
    def frame_index(self) -> int:
        """The index of the selected frame; -1 if there is none."""
        return position(self.frames, self.view.at_s)

    @cached_property
    def frame(self) -> Frame | None:
        """The selected frame; None if there is none."""
        return self.frames[self.frame_index] if self.frames else None

    @cached_property
    def order(self) -> list[int]:
        """The indices of the visible nodes, in display order."""
        return order(self.frame, self.view) if self.frame else []

    @cached_property
    def severities(self) -> list[int]:
        return [severity(node) for node in self.frame.nodes] if self.frame else []

    def name(self, node: int) -> str:
        return clean(self.frame.nodes[node].name, self.marks) if self.frame else ""

    def trend(self, column: str, node: int | None, width: int) -> list[float]:
        """Return a column's last `width` values up to the selected frame.

        The values are the node's or, if `node` is None, the cluster's.
        """
        column_index = COLUMN_INDEX[column]
        last = self.frame_index + 1
        shown = self.frames[max(0, last - width) : last]
        if node is None:
            return [frame.cluster[column_index] for frame in shown]
        nan = float("nan")
        return [frame.nodes[node].cells[column_index] if node < len(frame.nodes) else nan for frame in shown]

    def group_trend(self, column: str, location: str, width: int) -> list[float]:
        """Return a column's last `width` values of a data centre or rack; NaN where the frames do not contain it."""
        column_index, last = COLUMN_INDEX[column], self.frame_index + 1
        groups = [frame.groups.get(location) for frame in self.frames[max(0, last - width) : last]]
        return [float("nan") if group is None else group.cells[column_index] for group in groups]


def clock_time(time_s: float, *, date: bool = False) -> str:
    """Return a time as the local time of day, preceded by the date if `date` is true."""
    moment = datetime.fromtimestamp(round(time_s, 1), timezone.utc).astimezone()
    tenth = f".{moment.microsecond // 100_000}" if moment.microsecond else ""
    return f"{moment:%Y-%m-%d %H:%M:%S}{tenth}" if date else f"{moment:%H:%M:%S}{tenth}"


def are_wanted(context: RenderContext) -> bool:
    """Return whether the frames should contain groups."""
    return context.view.group is not None or _is_due(context)


def are_shown(context: RenderContext) -> bool:
    """Return whether the table has a row per group instead of a row per node."""
    frame = context.frame
    return frame is not None and bool(frame.groups) and context.view.group is None and _is_due(context)


def group_order(context: RenderContext) -> list[str]:
    """Return the locations of the groups in display order: each data centre, followed by its racks."""
    frame, view = context.frame, context.view
    if frame is None:
        return []

    def key(location: str) -> tuple[object, ...]:
        group = frame.groups[location]
        return _rank(view, location, group.cells, lambda: context.severities[worst_index(context, group)])

    in_order = sorted(frame.groups, key=key, reverse=view.sort == "node" and view.reverse)
    dcs = [location for location in in_order if locations_of(location)[0] == location]
    racks = [location for location in in_order if location not in dcs]
    return [location for dc in dcs for location in (dc, *(rack for rack in racks if locations_of(rack)[0] == dc))]


def worst_index(context: RenderContext, group: GroupFrame) -> int:
    """Return the index of the group's node with the worst problem."""
    return max(group.nodes, key=context.severities.__getitem__)


def selected_group(context: RenderContext) -> str | None:
    """Return the location of the selected group; None if there are no groups."""
    order = group_order(context)
    return context.view.group_cursor if context.view.group_cursor in order else next(iter(order), None)


def _is_due(context: RenderContext) -> bool:
    view, frame = context.view, context.frame
    # A filter selects nodes, so it shows them.
    if context.source != "live" or frame is None or view.filter or view.faults:
        return False
    if view.grouped is not None:
        return view.grouped
    has_groups = any(node.location != frame.nodes[0].location for node in frame.nodes)
    return has_groups and len(frame.nodes) > rows(context)


def summary_lines(context: RenderContext) -> int:
    """Return the number of lines for the cluster's values, including one for operations other than reads and writes."""
    lines = _of(SUMMARY, context.height)
    has_others = context.frame is not None and bool(other_operations(context.frame.cluster))
    return lines + (has_others and lines == SUMMARY[0][1])


def event_lines(context: RenderContext) -> int:
    """Return the number of lines for events."""
    return 0 if context.view.help else _of(EVENTS, context.height)


def head_lines(context: RenderContext) -> int:
    """Return the number of lines above the table or page."""
    return 1 + summary_lines(context)


def rows(context: RenderContext) -> int:
    """Return the number of node rows, or lines of a page, that fit on the screen."""
    fixed = head_lines(context) + 1 + event_lines(context)
    table_head = TABLE_HEAD if is_table(context) else 0
    return max(context.height - fixed - table_head, 1)


def is_table(context: RenderContext) -> bool:
    """Return whether the screen shows a table with a row per node or group."""
    view = context.view
    return not view.help and view.node is None and not view.transposed


def _of(steps: tuple[tuple[int, int], ...], height: int) -> int:
    return next((lines for least, lines in steps if height >= least), 0)

"""The help page: keys, the columns of the current set, states and notes."""

from textwrap import wrap

from cli.top.screen_rows import RenderContext
from cli.top.styled_text import Line, Span, cut
from cli.top.view_state import SETS, columns, set_of
from collector.live.cluster_interval import State

KEYS = (
    ("1 to 8", " ".join(f"{number}: {column_set.name}" for number, column_set in enumerate(SETS, 1))),
    ("up down pgup pgdn home end", "move; j and k too"),
    ("enter, esc", "open a node with all its values and tables; back"),
    ("g", "data centres and racks, or all nodes; enter opens a group, esc closes it"),
    ("/ and /!", "show only nodes with this text in their name, location or state; hide them"),
    ("f", "show only nodes with a problem"),
    ("< > s r", "sort by the previous, next or named column; reverse the order"),
    ("w", "show the worst first"),
    ("t, m M", "nodes as columns, a line per tick; next, previous column"),
    ("space", "pause, resume"),
    ("left right [ ]", "step by one tick; { } by ten"),
    ("S", "go to a time (10:47) or back by a duration (5m)"),
    ("+ -", "play a recording faster, slower"),
    ("F1, ? or h", "this page"),
    ("q", "quit"),
)
STATES = {
    State.UP: "is answering",
    State.CHANGING: "is joining, leaving, starting or drained",
    State.SILENT: "its agent is answering, but Cassandra is not",
    State.GONE: "is not answering",
    State.NEW: "has not answered yet",
}
NOTES = (
    "The cluster's row covers the nodes on which Cassandra is answering: sums, and percentiles of merged buckets.",
    "Percentages of a node's own resources (heap, GC, JVM CPU, disk) are means. '-' means unknown.",
    "The percentage at the top right is the CPU usage of casstat top; 100% is one full core.",
)


LABEL = 27


def lines(context: RenderContext, room: int) -> list[Line]:
    width = context.width
    signs = [*((context.marks.states[state], text) for state, text in STATES.items())]
    signs.append((context.marks.fault, "a value exceeds its threshold and is coloured"))
    whole: list[Line] = []
    for keys, text in KEYS:
        whole += _described(f"   {keys:<{LABEL}} ", text, width)
    chosen = columns(set_of(context.view))
    if chosen:
        whole.append((Span(f" columns of {set_of(context.view).name}", "bold"),))
    for column in chosen:
        whole += _described(f"   {column.header:<{LABEL}} ", column.help, width)
    whole.append((Span(" states", "bold"),))
    for sign, text in signs:
        whole += _described(f"   {sign}  ", text, width)
    for text in NOTES:
        whole += _described(" ", text, width)
    shown = max(room - 1, 0)
    first = min(context.view.first, max(len(whole) - shown, 0))
    more = "" if first + shown >= len(whole) else "  (down: more)"
    page = [(Span(" keys", "bold"), Span(more, "dim")), *whole[first : first + shown]]
    return [cut(line, width) for line in (page + [()] * room)[:room]]


def _described(label: str, text: str, width: int) -> list[Line]:
    """Return the lines for a label with its wrapped text beside it."""
    parts = wrap(text, max(width - len(label), 1))
    return [(Span(" " * len(label) if number else label), Span(part, "dim")) for number, part in enumerate(parts)]

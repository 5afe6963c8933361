"""What the keys do."""

from textwrap import wrap

from cli.top.column_sets import SETS
from cli.top.render_context import RenderContext
from cli.top.styled_text import Line, Span, cut
from collector.cluster.live.cluster_interval import State

KEYS = (
    ("1 to 7", " ".join(f"{number}: {each.name}" for number, each in enumerate(SETS, 1))),
    ("up down pgup pgdn home end", "move; j and k too"),
    ("enter, esc", "one node with all its figures and tables; back"),
    ("/ and /!", "only nodes whose name, place or state has this; all but those"),
    ("f", "only nodes that something is wrong with"),
    ("< > s r", "sort by the column before, after, or named; the other way round"),
    ("w", "the worst first again"),
    ("t, m M", "nodes as columns of one figure, a line a tick; the next, the last figure"),
    ("space", "pause, and go on"),
    ("left right [ ]", "one tick back, one on; { } ten"),
    ("S", "go to a time (10:47) or back by a duration (5m)"),
    ("+ -", "play a recording faster, slower"),
    ("q", "quit"),
)
STATES = {
    State.UP: "answers",
    State.CHANGING: "is joining, leaving, starting or drained",
    State.SILENT: "what watches it answers, Cassandra does not",
    State.GONE: "nothing answers",
    State.NEW: "not heard of yet",
}
NOTES = (
    "The cluster's row holds sums; its percentiles come from the buckets of all nodes, those in the title alone.",
    "Shares of what each node has for itself (heap, GC, JVM's CPU, disk busy) are means. '-' is: not known.",
    "The percentage at the top right is the CPU of one core that casstat top takes itself.",
)


LABEL = 27


def lines(scene: RenderContext, room: int) -> list[Line]:
    """Return the page, from the line that is scrolled to on."""
    width = scene.width
    signs = [*((scene.marks.states[state], text) for state, text in STATES.items())]
    signs.append((scene.marks.fault, "a figure is beyond a threshold: it is coloured"))
    whole: list[Line] = []
    for keys, text in KEYS:
        whole += _described(f"   {keys:<{LABEL}} ", text, width)
    whole.append((Span(" states", "bold"),))
    for sign, text in signs:
        whole += _described(f"   {sign}  ", text, width)
    for text in NOTES:
        whole += _described(" ", text, width)
    shown = max(room - 1, 0)
    first = min(scene.look.first, max(len(whole) - shown, 0))
    more = "" if first + shown >= len(whole) else "  (down: more)"
    page = [(Span(" keys", "bold"), Span(more, "dim")), *whole[first : first + shown]]
    return [cut(line, width) for line in (page + [()] * room)[:room]]


def _described(label: str, text: str, width: int) -> list[Line]:
    """Return a label with its text beside it, in as many lines as that takes."""
    parts = wrap(text, max(width - len(label), 1))
    return [(Span(" " * len(label) if number else label), Span(part, "dim")) for number, part in enumerate(parts)]

"""What the keys do."""

from cli.top.scene import Scene
from cli.top.sets import SETS
from cli.top.text import Line, Span, cut
from exporters.live.frame import State

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
    ("S", "go to a time of day, or so many seconds back"),
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


def lines(scene: Scene, room: int) -> list[Line]:
    """Return the page."""
    width = scene.width
    marks = scene.marks
    whole: list[Line] = [cut((Span(" keys", "bold"),), width)]
    whole += [cut((Span(f"   {keys:<27}"), Span(f" {text}", "dim")), width) for keys, text in KEYS]
    whole.append(cut((Span(" states", "bold"),), width))
    whole += [cut((Span(f"   {marks.states[state]}  {text}"),), width) for state, text in STATES.items()]
    whole.append(cut((Span(f"   {marks.fault}  a figure is beyond what is usual: it is coloured"),), width))
    whole += [cut((Span(f" {text}", "dim"),), width) for text in NOTES]
    first = min(scene.look.first, max(len(whole) - room, 0))
    return (whole[first:] + [cut((), width)] * room)[:room]

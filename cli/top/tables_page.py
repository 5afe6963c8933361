"""Tables, the busiest first: of all nodes together, or of one."""

from collections.abc import Mapping, Sequence
from typing import Any

from cli.top.scene import Scene
from cli.top.text import Line, Span, clean, cut, fit, number
from exporters.live.frame import ALL

# Header, what of a row, digits, and what is left out first where there is no room.
CELLS = (
    ("Rds/s", "reads_per_s", 1, 5),
    ("RdLat", "read_mean_ms", 3, 3),
    ("Rd99th", "read_p99_ms", 3, 4),
    ("Wrts/s", "writes_per_s", 1, 5),
    ("WrtLat", "write_mean_ms", 3, 2),
    ("Wrt99th", "write_p99_ms", 3, 3),
)
WIDTH, SHORTEST = 9, 20


def rows_of(scene: Scene, node: int | None) -> Sequence[Mapping[str, Any]]:
    """Return the tables of a node, or of all together, those that the filter lets through."""
    frame, look = scene.frame, scene.look
    rows = frame.tables.get(ALL if node is None else node, ()) if frame else ()
    wanted = look.filter.lower() if node is None else ""
    return [
        row
        for row in rows
        if (wanted in f"{row['keyspace']}.{row['table']}".lower()) is not (look.inverse and bool(wanted))
    ]


def header(scene: Scene) -> Line:
    """Return the line with the names of the figures."""
    cells = _fitting(scene.width)
    text = "".join(f"{name:>{WIDTH}}" for name, *_ in cells)
    return cut(
        (Span(f"   {fit('TABLE', _name(scene.width), scene.marks)}{text}{' ' * scene.width}", "head"),), scene.width
    )


def lines(scene: Scene, node: int | None, first: int, room: int) -> list[Line]:
    """Return the lines of tables from the one with number `first` on."""
    rows = rows_of(scene, node)
    if not rows:
        later = ": they are read from the next tick on" if scene.source == "live" and scene.look.at_s is None else ""
        return [cut((Span(f"   no tables are known{later}", "dim"),), scene.width)][:room]
    return [_line(scene, row) for row in rows[first : first + room]]


def compactions(scene: Scene, node: int | None, room: int) -> list[Line]:
    """Return the compactions that run, the furthest first."""
    frame = scene.frame
    rows = frame.running.get(ALL if node is None else node, ()) if frame else ()
    found = []
    for row in rows[:room]:
        name = clean(f"{row['keyspace']}.{row['table']}" if row["table"] else "", scene.marks)
        text = f"   {row['done_pct']:5.1f} %  {clean(row['type'], scene.marks)} {name}"
        found.append(cut((Span(text),), scene.width))
    return found


def _line(scene: Scene, row: Mapping[str, Any]) -> Line:
    name = clean(f"{row['keyspace']}.{row['table']}", scene.marks)
    cells = (f"{number(row[key], digits, WIDTH - 1):>{WIDTH}}" for _, key, digits, _ in _fitting(scene.width))
    return cut((Span(f"   {fit(name, _name(scene.width), scene.marks)}"), Span("".join(cells))), scene.width)


def _fitting(width: int) -> list[tuple[str, str, int, int]]:
    kept = list(CELLS)
    while kept and 3 + SHORTEST + WIDTH * len(kept) > width:
        kept.remove(min(kept, key=lambda cell: cell[3]))
    return kept


def _name(width: int) -> int:
    return max(min(width - 3 - WIDTH * len(_fitting(width)), 44), 1)

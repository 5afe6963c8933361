"""Tables, the busiest first: of all nodes together, or of one."""

from collections.abc import Mapping, Sequence
from typing import Any

from cli.top.render_context import RenderContext
from cli.top.styled_text import Line, Span, clean, cut, fit, number
from exporters.line.table_rows import TableColumn, fitting
from exporters.live.frame import ALL

WIDTH, SHORTEST = 9, 20


def rows_of(scene: RenderContext, node: int | None) -> Sequence[Mapping[str, Any]]:
    """Return the tables of a node, or of all together, those that the filter lets through."""
    frame, look = scene.frame, scene.look
    rows = frame.tables.get(ALL if node is None else node, ()) if frame else ()
    wanted = look.filter.lower() if node is None else ""
    return [
        row
        for row in rows
        if (wanted in f"{row['keyspace']}.{row['table']}".lower()) is not (look.inverse and bool(wanted))
    ]


def header(scene: RenderContext) -> Line:
    """Return the line with the names of the figures."""
    text = "".join(f"{column.header:>{WIDTH}}" for column in _fitting(scene.width))
    return cut(
        (Span(f"   {fit('TABLE', _name(scene.width), scene.marks)}{text}{' ' * scene.width}", "head"),), scene.width
    )


def lines(scene: RenderContext, node: int | None, first: int, room: int) -> list[Line]:
    """Return the lines of tables from the one with number `first` on."""
    rows = rows_of(scene, node)
    if not rows:
        later = ": they are read from the next tick on" if scene.source == "live" and scene.look.at_s is None else ""
        return [cut((Span(f"   no tables are known{later}", "dim"),), scene.width)][:room]
    return [_line(scene, row) for row in rows[first : first + room]]


def compactions(scene: RenderContext, node: int | None, room: int) -> list[Line]:
    """Return the compactions that run, the furthest first."""
    frame = scene.frame
    rows = frame.running.get(ALL if node is None else node, ()) if frame else ()
    found = []
    for row in rows[:room]:
        name = clean(f"{row['keyspace']}.{row['table']}" if row["table"] else "", scene.marks)
        text = f"   {row['done_pct']:5.1f} %  {clean(row['type'], scene.marks)} {name}"
        found.append(cut((Span(text),), scene.width))
    return found


def _line(scene: RenderContext, row: Mapping[str, Any]) -> Line:
    name = clean(f"{row['keyspace']}.{row['table']}", scene.marks)
    cells = (f"{number(row[key], digits, WIDTH - 1):>{WIDTH}}" for _, key, digits in _fitting(scene.width))
    return cut((Span(f"   {fit(name, _name(scene.width), scene.marks)}"), Span("".join(cells))), scene.width)


def _fitting(width: int) -> list[TableColumn]:
    return fitting(max((width - 3 - SHORTEST) // WIDTH, 0))


def _name(width: int) -> int:
    return max(min(width - 3 - WIDTH * len(_fitting(width)), 44), 1)

"""Formats frames for output without the interactive screen: as a plain table or a JSON object per tick."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from cli.top.node_table import header, layout, merged_row, node_row
from cli.top.pages import table_lines, tables_header, tables_of
from cli.top.screen_rows import RenderContext, clock_time
from cli.top.styled_text import ASCII, cut, number, plain
from cli.top.view_state import ViewState, set_of
from collector.printable import printable_json
from exporters.live.frame import ALL, Frame
from exporters.live.live_columns import COLUMNS, Cells, other_operations, value
from exporters.rows.columns import Cell, rounded
from exporters.rows.operation_columns import TOTAL_RATE

# Wide enough for all columns, since the output is not limited by a terminal's width.
WIDEST = 400


def table_text(frame: Frame, view: ViewState) -> str:
    """Return a frame as plain text: a line with its time and node count, then the table.

    If the columns show reads and writes, and there are other operations, the first column is the rate of all of them.
    """
    others = other_operations(frame.cluster)
    names = set_of(view).columns
    if others and "reads_per_s" in names and not view.picked and TOTAL_RATE not in names:
        view = replace(view, picked=(TOTAL_RATE, *names))
    context = RenderContext([frame], view, WIDEST, len(frame.nodes) + 20, ASCII)
    if set_of(view).is_tables:
        rows = len(tables_of(context, None))
        lines = [tables_header(context), *table_lines(context, None, 0, max(rows, 1))]
    else:
        chosen = layout(context)
        lines = [header(context, chosen), merged_row(context, chosen)]
        lines += [node_row(context, chosen, node, pointed=False) for node in context.order]
    when = f"# {clock_time(frame.time_s, date=True)} {frame.counted} of {len(frame.nodes)} nodes"
    for operation in others:
        when += f", {operation.title} {number(value(frame.cluster, f'{operation.plural}_per_s'), 0)}/s"
    return "\n".join([when, *(plain(cut(line, WIDEST)).rstrip() for line in lines), ""])


def json_text(frame: Frame, own: tuple[float | None, float | None], names: frozenset[str]) -> str:
    """Return a frame as a JSON object on a single line; absent values are null.

    `own` contains the CPU usage of casstat top itself as a percentage, and its resident memory in MiB.
    """
    cpu_pct, size_mb = own
    content: dict[str, Any] = {
        "time": rounded(frame.time_s),
        "interval_s": frame.interval_s,
        "cluster_name": frame.name or None,
        "nodes_total": len(frame.nodes),
        "nodes_counted": frame.counted,
        "cluster": _cells(frame.cluster, names),
        "nodes": [
            {
                "node": node.name,
                "state": node.state.value,
                "why": node.reason or None,
                "age_s": rounded(node.age_s),
                "place": node.location or None,
                **_cells(node.cells, names),
            }
            for node in frame.nodes
        ],
        "events": [event._asdict() for event in frame.events],
        "top_cpu_pct": rounded(cpu_pct),
        "top_resident_mb": rounded(size_mb),
    }
    if ALL in frame.tables:
        content["tables"] = list(frame.tables[ALL])
    return printable_json(json.dumps(content, ensure_ascii=False, allow_nan=False))


def _cells(cells: Cells, names: frozenset[str]) -> Mapping[str, Cell]:
    pairs = zip(COLUMNS, cells, strict=True)
    return {column.name: rounded(cell) for column, cell in pairs if column.name in names}

"""The number of lines in each part of the screen."""

from cli.top.render_context import RenderContext
from exporters.live.live_columns import other_operations

# Pairs of a minimum screen height and the number of lines for events, including their heading.
EVENTS = ((60, 10), (40, 7), (24, 4), (20, 3), (12, 1))
# Pairs of a minimum screen height and the number of lines for the cluster's values.
SUMMARY = ((18, 3), (14, 2), (10, 1))
TABLE_HEAD = 2
"""Number of table lines above the nodes: the header and the cluster's row."""


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

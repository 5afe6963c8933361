"""Mouse actions, as pure functions that map a view state to the next one."""

from dataclasses import replace

from cli.top import node_table, screen_rows
from cli.top.column_sets import set_of
from cli.top.groups import are_shown, group_order, selected_group
from cli.top.key_bindings import pressed
from cli.top.render_context import RenderContext
from cli.top.view_state import ViewState

WHEEL_ROWS = 3
LEFT, RIGHT = 1, 3


def clicked(context: RenderContext, x: int, y: int, button: int = LEFT) -> ViewState:
    """Return the view state after a click.

    A click on a header sorts by that column, a click on a row selects it, and a click on the selected row opens it.
    The right button goes back, like Esc.
    """
    view = replace(context.view, message="")
    if view.prompt or context.frame is None:
        return view
    if button == RIGHT or view.help:
        return pressed(context, "escape", "") or view
    if button != LEFT or view.node is not None or view.transposed or set_of(view).is_tables:
        return view
    row = y - screen_rows.head_lines(context)
    if row == 0:
        return _sorted_by(context, view, x)
    return _selected(context, view, row - screen_rows.TABLE_HEAD)


def scrolled(context: RenderContext, direction: int) -> ViewState:
    """Return the view state after the wheel has been scrolled up (-1) or down (1)."""
    view = context.view
    for _ in range(WHEEL_ROWS):
        view = pressed(replace(context, view=view), "up" if direction < 0 else "down", "") or view
    return view


def _sorted_by(context: RenderContext, view: ViewState, x: int) -> ViewState:
    name = node_table.column_at(context, x)
    if not name:
        return view
    return replace(view, sort=name, reverse=not view.reverse and view.sort == name, first=0)


def _selected(context: RenderContext, view: ViewState, row: int) -> ViewState:
    if are_shown(context):
        groups = group_order(context)[view.first : view.first + screen_rows.rows(context)]
        if not 0 <= row < len(groups):
            return view
        if groups[row] == selected_group(context):
            return pressed(context, "enter", "") or view
        return replace(view, group_cursor=groups[row])
    nodes = context.order[view.first : view.first + screen_rows.rows(context)]
    if not 0 <= row < len(nodes):
        return view
    node = nodes[row]
    return replace(view, node=node, first=0) if view.cursor == node else replace(view, cursor=node)

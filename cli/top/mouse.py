"""What the mouse does: from what is shown to what is shown next, without a terminal."""

from dataclasses import replace

from cli.top import node_table, screen
from cli.top.column_sets import set_of
from cli.top.key_bindings import pressed
from cli.top.render_context import RenderContext
from cli.top.view_state import ViewState

WHEEL_ROWS = 3
LEFT, RIGHT = 1, 3


def clicked(scene: RenderContext, x: int, y: int, button: int = LEFT) -> ViewState:
    """Return what is to be seen after a click on a cell: a header sorts, a node is selected, a selected one opens.

    The right button leads back, as Esc does.
    """
    look = replace(scene.look, said="")
    if look.prompt or scene.frame is None:
        return look
    if button == RIGHT or look.help:
        return pressed(scene, "escape", "") or look
    if button != LEFT or look.node is not None or look.transposed or set_of(look).is_tables:
        return look
    row = y - screen.head_lines(scene)
    if row == 0:
        return _sorted_by(scene, look, x)
    return _selected(scene, look, row - screen.TABLE_HEAD)


def scrolled(scene: RenderContext, direction: int) -> ViewState:
    """Return what is to be seen after a turn of the wheel, up (-1) or down (1)."""
    look = scene.look
    for _ in range(WHEEL_ROWS):
        look = pressed(replace(scene, look=look), "up" if direction < 0 else "down", "") or look
    return look


def _sorted_by(scene: RenderContext, look: ViewState, x: int) -> ViewState:
    name = node_table.column_at(scene, x)
    if not name:
        return look
    return replace(look, sort=name, reverse=not look.reverse and look.sort == name, first=0)


def _selected(scene: RenderContext, look: ViewState, row: int) -> ViewState:
    nodes = scene.order[look.first : look.first + screen.rows(scene)]
    if not 0 <= row < len(nodes):
        return look
    node = nodes[row]
    return replace(look, node=node, first=0) if look.cursor == node else replace(look, cursor=node)

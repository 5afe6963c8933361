"""Key bindings and mouse actions, as pure functions that map a view state to the next one."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from cli.parameters.parameter_types import TimeOfDay, duration_of, time_of
from cli.top import node_table, screen_rows
from cli.top.pages import metric_of, shown_nodes
from cli.top.screen_rows import RenderContext, are_shown, group_order, rows, selected_group
from cli.top.view_state import SETS, ViewState, columns, set_of
from exporters.live.live_columns import COLUMNS

FAR, FASTEST, SLOWEST = 10, 64.0, 0.125
MAX_CHARS = 60
MAX_AGO_S = 1e8
WHEEL_ROWS = 3
LEFT, RIGHT = 1, 3


def pressed(context: RenderContext, key: str, letter: str) -> ViewState | None:
    """Return the view state after a key press, given the key's name and character; None if the key quits."""
    view = replace(context.view, message="")
    if view.prompt:
        return _typed(context, view, key, letter)
    if key in ("ctrl+c", "q"):
        return None
    if key in ("escape", "backspace"):
        return _back(view)
    if view.help and key not in _MOVES:
        # Any key that is not handled above, except the movement keys, closes the help page.
        return replace(view, help=False, first=0)
    if letter in "12345678" and letter:
        return replace(
            view, chosen=int(letter) - 1, picked=(), sort="", cursor=None, first=0, node=None, transposed=False
        )
    does = _KEYS.get(letter) or _KEYS.get(key)
    return does(context, view) if does else view


def _back(view: ViewState) -> ViewState:
    if view.help:
        return replace(view, help=False, first=0)
    if view.node is not None:
        return replace(view, node=None, first=0)
    if view.transposed:
        return replace(view, transposed=False, metric="", first=0)
    if view.group is not None and not (view.filter or view.faults):
        return replace(view, group=None, first=0)
    return replace(view, filter="", inverse=False, faults=False, first=0)


def _typed(context: RenderContext, view: ViewState, key: str, letter: str) -> ViewState:
    if key in ("escape", "ctrl+c"):
        return replace(view, prompt="", typed="")
    if key == "backspace":
        return replace(view, typed=view.typed[:-1]) if view.typed else replace(view, prompt="")
    if key in ("enter", "ctrl+j"):
        done = replace(view, prompt="", typed="", first=0)
        return {"/": _filter, "s": _sort, "S": _seek}[view.prompt](context, done, view.typed)
    if letter and letter.isprintable():
        return replace(view, typed=(view.typed + letter)[:MAX_CHARS])
    return view


def _filter(_: RenderContext, view: ViewState, typed: str) -> ViewState:
    return replace(view, filter=typed.removeprefix("!"), inverse=typed.startswith("!"), cursor=None)


def _sort(_: RenderContext, view: ViewState, typed: str) -> ViewState:
    wanted = typed.strip().lower()
    if not wanted:
        return replace(view, sort="", reverse=False)
    if wanted in ("node", "name"):
        return replace(view, sort="node", reverse=False)
    chosen = columns(set_of(view))
    for fits in (str.__eq__, str.startswith):
        for column in (*chosen, *COLUMNS):
            if fits(column.header.lower(), wanted) or fits(column.name, wanted):
                return replace(view, sort=column.name, reverse=False)
    return replace(view, message=f"unknown column '{typed.strip()[:20]}'")


def _seek(context: RenderContext, view: ViewState, typed: str) -> ViewState:
    if not context.frames:
        return view
    words, last_s = typed.strip(), context.frames[-1].time_s
    with suppress(ValueError):
        # A number of at least MAX_AGO_S is not a duration, but a time in seconds since the epoch.
        if (ago_s := duration_of(words.removeprefix("-"))) < MAX_AGO_S:
            return _at(context, view, last_s - ago_s)
    try:
        moment = time_of(words)
    except (ValueError, OverflowError):
        hint = "(hint: for example 02:31:07, 90 or 5m)"
        return replace(view, message=f"'{words[:20]}' is not a valid time or duration {hint}")
    return _at(context, view, moment.last_before(last_s) if isinstance(moment, TimeOfDay) else moment)


def _at(context: RenderContext, view: ViewState, time_s: float) -> ViewState:
    first_s, last_s = context.frames[0].time_s, context.frames[-1].time_s
    message = "no earlier ticks are available" if time_s < first_s else ""
    return replace(view, at_s=min(max(time_s, first_s), last_s), playing=False, message=message)


def _step(by: int) -> Callable[[RenderContext, ViewState], ViewState]:
    def step(context: RenderContext, view: ViewState) -> ViewState:
        if not context.frames:
            return view
        frame_index = min(max(context.frame_index + by, 0), len(context.frames) - 1)
        return replace(view, at_s=context.frames[frame_index].time_s, playing=False)

    return step


def _pause(context: RenderContext, view: ViewState) -> ViewState:
    if context.source != "live":
        return replace(view, playing=not view.playing)
    if view.at_s is not None:
        return replace(view, at_s=None)
    return replace(view, at_s=context.frames[-1].time_s) if context.frames else view


def _faster(factor: float) -> Callable[[RenderContext, ViewState], ViewState]:
    return lambda _, view: replace(view, speed=min(max(view.speed * factor, SLOWEST), FASTEST))


def _prompt(kind: str) -> Callable[[RenderContext, ViewState], ViewState]:
    return lambda _, view: replace(view, prompt=kind, typed="")


def _sort_beside(by: int) -> Callable[[RenderContext, ViewState], ViewState]:
    def move(_: RenderContext, view: ViewState) -> ViewState:
        names = ["", "node", *set_of(view).columns]
        at = names.index(view.sort) if view.sort in names else 0
        return replace(view, sort=names[(at + by) % len(names)], first=0)

    return move


def _transpose(context: RenderContext, view: ViewState) -> ViewState:
    if set_of(view).is_tables:
        return replace(view, message="tables cannot be transposed")
    there = replace(view, transposed=not view.transposed, node=None, first=0)
    return replace(there, metric=metric_of(context) if there.transposed else "")


def _metric(by: int) -> Callable[[RenderContext, ViewState], ViewState]:
    def move(context: RenderContext, view: ViewState) -> ViewState:
        if not view.transposed:
            return view
        names = list(dict.fromkeys(name for column_set in SETS for name in column_set.columns))
        at = names.index(metric_of(context)) if metric_of(context) in names else 0
        return replace(view, metric=names[(at + by) % len(names)])

    return move


def _groups(context: RenderContext, view: ViewState) -> ViewState:
    if context.source != "live":
        return replace(view, message="data centres and racks are shown only live")
    return replace(view, grouped=not are_shown(context), group=None, first=0)


def _enter(context: RenderContext, view: ViewState) -> ViewState:
    if view.node is not None or view.transposed or set_of(view).is_tables:
        return view
    if are_shown(context):
        group = selected_group(context)
        return replace(view, group=group, group_cursor=group, cursor=None, first=0)
    nodes = context.order
    at = view.cursor if view.cursor in nodes else next(iter(nodes), None)
    return view if at is None else replace(view, node=at, cursor=at, first=0)


def _move(by: int | None, pages: int = 0) -> Callable[[RenderContext, ViewState], ViewState]:
    """Return an action that moves down by `by` rows and `pages` pages.

    If `by` is None, the action moves to the first row if `pages` is negative, otherwise to the last one.
    """

    def move(context: RenderContext, view: ViewState) -> ViewState:
        room = rows(context)
        if view.help or view.node is not None or set_of(view).is_tables or view.transposed:
            step = len(shown_nodes(context)) if view.transposed else room
            last = max(len(context.order) - step, 0) if view.transposed else MAX_CHARS
            goal = (0 if pages < 0 else last) if by is None else view.first + by + pages * step
            return replace(view, first=min(max(goal, 0), last))
        groups, nodes = (group_order(context), []) if are_shown(context) else ([], context.order)
        keys: Sequence[object] = groups or nodes
        if not keys:
            return view
        selected = view.group_cursor if groups else view.cursor
        at = keys.index(selected) if selected in keys else 0
        goal = (0 if pages < 0 else len(keys) - 1) if by is None else at + by + pages * room
        row = min(max(goal, 0), len(keys) - 1)
        first = min(max(view.first, row - room + 1), row)
        if groups:
            return replace(view, group_cursor=groups[row], first=first)
        return replace(view, cursor=nodes[row], first=first)

    return move


_MOVES: dict[str, Callable[[RenderContext, ViewState], ViewState]] = {
    "up": _move(-1),
    "down": _move(1),
    "k": _move(-1),
    "j": _move(1),
    "pageup": _move(0, -1),
    "pagedown": _move(0, 1),
    "home": _move(None, -1),
    "end": _move(None, 1),
}


_KEYS: dict[str, Callable[[RenderContext, ViewState], ViewState]] = {
    **_MOVES,
    **dict.fromkeys(("?", "f1", "h"), lambda _, view: replace(view, help=True, first=0)),
    "/": _prompt("/"),
    "s": _prompt("s"),
    "S": _prompt("S"),
    "<": _sort_beside(-1),
    ">": _sort_beside(1),
    "r": lambda _, view: replace(view, reverse=not view.reverse, first=0),
    "w": lambda _, view: replace(view, sort="", reverse=False, first=0),
    "f": lambda _, view: replace(view, faults=not view.faults, first=0),
    "g": _groups,
    "t": _transpose,
    "m": _metric(1),
    "M": _metric(-1),
    "enter": _enter,
    "ctrl+j": _enter,
    "space": _pause,
    "left": _step(-1),
    "right": _step(1),
    "[": _step(-1),
    "]": _step(1),
    "{": _step(-FAR),
    "}": _step(FAR),
    "+": _faster(2.0),
    "-": _faster(0.5),
}


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

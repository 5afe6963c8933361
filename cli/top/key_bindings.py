"""What keys do: from what is shown to what is shown next, without a terminal."""

from collections.abc import Callable
from dataclasses import replace

from cli.parameters.time_types import TimeOfDay, duration_of, time_of
from cli.top import screen, transposed
from cli.top.column_sets import SETS, columns, set_of
from cli.top.render_context import RenderContext
from cli.top.view_state import ViewState
from exporters.live.live_columns import COLUMNS

FAR, FASTEST, SLOWEST = 10, 64.0, 0.125
LONGEST = 60
LONGEST_AGO_S = 1e8


def pressed(scene: RenderContext, key: str, letter: str) -> ViewState | None:
    """Return what is to be seen after a key: its name, and the character that it types; None to leave."""
    look = replace(scene.look, said="")
    if look.prompt:
        return _typed(scene, look, key, letter)
    if key in ("ctrl+c", "q"):
        return None
    if key in ("escape", "backspace"):
        return _back(look)
    if look.help and key not in _MOVES:
        # Any key that is no other use leads back.
        return replace(look, help=False, first=0)
    if letter in "1234567" and letter:
        return replace(
            look, chosen=int(letter) - 1, picked=(), sort="", cursor=None, first=0, node=None, transposed=False
        )
    does = _KEYS.get(letter) or _KEYS.get(key)
    return does(scene, look) if does else look


def _back(look: ViewState) -> ViewState:
    if look.help:
        return replace(look, help=False, first=0)
    if look.node is not None:
        return replace(look, node=None, first=0)
    if look.transposed:
        return replace(look, transposed=False, metric="", first=0)
    return replace(look, filter="", inverse=False, faults=False, first=0)


def _typed(scene: RenderContext, look: ViewState, key: str, letter: str) -> ViewState:
    if key in ("escape", "ctrl+c"):
        return replace(look, prompt="", typed="")
    if key == "backspace":
        return replace(look, typed=look.typed[:-1]) if look.typed else replace(look, prompt="")
    if key in ("enter", "ctrl+j"):
        done = replace(look, prompt="", typed="", first=0)
        return {"/": _filter, "s": _sort, "S": _seek}[look.prompt](scene, done, look.typed)
    if letter and letter.isprintable():
        return replace(look, typed=(look.typed + letter)[:LONGEST])
    return look


def _filter(_: RenderContext, look: ViewState, typed: str) -> ViewState:
    return replace(look, filter=typed.removeprefix("!"), inverse=typed.startswith("!"), cursor=None)


def _sort(_: RenderContext, look: ViewState, typed: str) -> ViewState:
    wanted = typed.strip().lower()
    if not wanted:
        return replace(look, sort="", reverse=False)
    if wanted in ("node", "name"):
        return replace(look, sort="node", reverse=False)
    chosen = columns(set_of(look))
    for fits in (str.__eq__, str.startswith):
        for column in (*chosen, *COLUMNS):
            if fits(column.header.lower(), wanted) or fits(column.name, wanted):
                return replace(look, sort=column.name, reverse=False)
    return replace(look, said=f"there is no column '{typed.strip()[:20]}'")


def _seek(scene: RenderContext, look: ViewState, typed: str) -> ViewState:
    if not scene.frames:
        return look
    words, last_s = typed.strip(), scene.frames[-1].time_s
    try:
        # A number this large is no duration but seconds since the epoch.
        if (ago_s := duration_of(words.removeprefix("-"))) < LONGEST_AGO_S:
            return _at(scene, look, last_s - ago_s)
    except ValueError:
        pass
    try:
        moment = time_of(words)
    except (ValueError, OverflowError):
        return replace(look, said=f"'{words[:20]}' is not a time such as 02:31:07, or a duration such as 90 or 5m")
    return _at(scene, look, moment.last_before(last_s) if isinstance(moment, TimeOfDay) else moment)


def _at(scene: RenderContext, look: ViewState, time_s: float) -> ViewState:
    first_s, last_s = scene.frames[0].time_s, scene.frames[-1].time_s
    said = "nothing is kept from before this" if time_s < first_s else ""
    return replace(look, at_s=min(max(time_s, first_s), last_s), playing=False, said=said)


def _step(by: int) -> Callable[[RenderContext, ViewState], ViewState]:
    def step(scene: RenderContext, look: ViewState) -> ViewState:
        if not scene.frames:
            return look
        place = min(max(scene.place + by, 0), len(scene.frames) - 1)
        return replace(look, at_s=scene.frames[place].time_s, playing=False)

    return step


def _pause(scene: RenderContext, look: ViewState) -> ViewState:
    if scene.source != "live":
        return replace(look, playing=not look.playing)
    if look.at_s is not None:
        return replace(look, at_s=None)
    return replace(look, at_s=scene.frames[-1].time_s) if scene.frames else look


def _faster(factor: float) -> Callable[[RenderContext, ViewState], ViewState]:
    return lambda _, look: replace(look, speed=min(max(look.speed * factor, SLOWEST), FASTEST))


def _ask(what: str) -> Callable[[RenderContext, ViewState], ViewState]:
    return lambda _, look: replace(look, prompt=what, typed="")


def _sort_beside(by: int) -> Callable[[RenderContext, ViewState], ViewState]:
    def move(_: RenderContext, look: ViewState) -> ViewState:
        names = ["", "node", *set_of(look).columns]
        at = names.index(look.sort) if look.sort in names else 0
        return replace(look, sort=names[(at + by) % len(names)], first=0)

    return move


def _transpose(scene: RenderContext, look: ViewState) -> ViewState:
    if set_of(look).is_tables:
        return replace(look, said="tables have one layout")
    there = replace(look, transposed=not look.transposed, node=None, first=0)
    return replace(there, metric=transposed.metric_of(scene) if there.transposed else "")


def _metric(by: int) -> Callable[[RenderContext, ViewState], ViewState]:
    def move(scene: RenderContext, look: ViewState) -> ViewState:
        if not look.transposed:
            return look
        names = list(dict.fromkeys(name for each in SETS for name in each.columns))
        at = names.index(transposed.metric_of(scene)) if transposed.metric_of(scene) in names else 0
        return replace(look, metric=names[(at + by) % len(names)])

    return move


def _enter(scene: RenderContext, look: ViewState) -> ViewState:
    if look.node is not None or look.transposed or set_of(look).is_tables:
        return look
    nodes = scene.order
    at = look.cursor if look.cursor in nodes else next(iter(nodes), None)
    return look if at is None else replace(look, node=at, cursor=at, first=0)


def _move(by: int | None, whole: int = 0) -> Callable[[RenderContext, ViewState], ViewState]:
    """Move by rows, by `whole` screens of them, or (None) to the beginning or the end."""

    def move(scene: RenderContext, look: ViewState) -> ViewState:
        room = screen.rows(scene)
        if look.help or look.node is not None or set_of(look).is_tables or look.transposed:
            step = len(transposed.shown(scene)) if look.transposed else room
            last = max(len(scene.order) - step, 0) if look.transposed else LONGEST
            goal = (0 if whole < 0 else last) if by is None else look.first + by + whole * step
            return replace(look, first=min(max(goal, 0), last))
        nodes = scene.order
        if not nodes:
            return look
        at = nodes.index(look.cursor) if look.cursor in nodes else 0
        goal = (0 if whole < 0 else len(nodes) - 1) if by is None else at + by + whole * room
        row = min(max(goal, 0), len(nodes) - 1)
        first = min(max(look.first, row - room + 1), row)
        return replace(look, cursor=nodes[row], first=first)

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
    "?": lambda _, look: replace(look, help=True, first=0),
    "h": lambda _, look: replace(look, help=True, first=0),
    "/": _ask("/"),
    "s": _ask("s"),
    "S": _ask("S"),
    "<": _sort_beside(-1),
    ">": _sort_beside(1),
    "r": lambda _, look: replace(look, reverse=not look.reverse, first=0),
    "w": lambda _, look: replace(look, sort="", reverse=False, first=0),
    "f": lambda _, look: replace(look, faults=not look.faults, first=0),
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

"""The view state: everything on the screen that the user controls."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from exporters.live.frame import Frame


@dataclass(frozen=True)
class ViewState:
    """The view state of `casstat top`.

    chosen        index of the selected column set.
    picked        names of the columns shown instead of a set; () for none.
    sort          column to sort by; "" for worst first.
    at_s          time of the selected tick, in seconds since the epoch; None for the newest one.
    playing       whether a recording is advancing, by `speed` seconds per second.
    cursor        index of the selected node; None for the node in the first row.
    first         index of the first visible row, page line or node column.
    node          index of the node whose page is open; None for none.
    grouped       whether to show data centres and racks; None to show them if there are more nodes than lines.
    group         location of the group whose nodes are shown; None for all nodes.
    group_cursor  location of the selected group; None for the one in the first row.
    prompt        the open prompt: "/" for a filter, "s" for a column, "S" for a time; "" for none. `typed` is its text.
    message       message in the footer; "" for none.
    """

    chosen: int = 0
    picked: tuple[str, ...] = ()
    sort: str = ""
    reverse: bool = False
    filter: str = ""
    inverse: bool = False
    faults: bool = False
    transposed: bool = False
    metric: str = ""
    at_s: float | None = None
    playing: bool = False
    speed: float = 1.0
    cursor: int | None = None
    first: int = 0
    node: int | None = None
    grouped: bool | None = None
    group: str | None = None
    group_cursor: str | None = None
    help: bool = False
    prompt: str = ""
    typed: str = ""
    message: str = ""


def position(frames: Sequence[Frame], at_s: float | None) -> int:
    """Return the index of the last frame not later than `at_s`, or 0 if all are later; -1 without frames."""
    if at_s is None:
        return len(frames) - 1
    index = bisect_right(frames, at_s, key=lambda frame: frame.time_s) - 1
    return max(index, 0) if frames else -1

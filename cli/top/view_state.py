"""What the user chose to see: the whole state of the screen beside the data."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from exporters.live.frame import Frame


@dataclass(frozen=True)
class ViewState:
    """One choice of what is shown.

    chosen      which set of columns.
    picked      columns by name instead of a set; () for none.
    sort        the column to sort by; "" for the worst first.
    at_s        the tick that is looked at, seconds since the epoch; None for the newest.
    playing     whether that moves on by itself, `speed` ticks' time in a second's; of a recording.
    cursor      the place of the node that is pointed at; None for the first row's.
    first       the first row that is shown.
    node        the place of the node that is shown alone.
    prompt      what is being typed: "/" a filter, "s" a column, "S" a time; "" for nothing.
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
    help: bool = False
    prompt: str = ""
    typed: str = ""
    said: str = ""


def position(frames: Sequence[Frame], at_s: float | None) -> int:
    """Return which frame is looked at: the last one not after that time; -1 when there are none."""
    if at_s is None:
        return len(frames) - 1
    place = bisect_right(frames, at_s, key=lambda frame: frame.time_s) - 1
    return max(place, 0) if frames else -1

"""All that a screen is made of."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from cli.top.severity import order
from cli.top.styled_text import FINE, Marks, clean
from cli.top.view_state import ViewState, position
from exporters.live.frame import Frame
from exporters.live.live_columns import PLACES

TREND_S = 300.0


@dataclass(frozen=True)
class RenderContext:
    """The frames that there are, what to show of them, and how large the screen is.

    own     what casstat top itself costs, in words.
    source  where the frames come from: "live" or "recording".
    """

    frames: Sequence[Frame]
    look: ViewState
    width: int
    height: int
    marks: Marks = FINE
    own: str = ""
    source: str = "live"

    @property
    def place(self) -> int:
        """Which frame is looked at; -1 for none."""
        return position(self.frames, self.look.at_s)

    @property
    def frame(self) -> Frame | None:
        """The frame that is looked at."""
        return self.frames[self.place] if self.frames else None

    @property
    def order(self) -> list[int]:
        """The nodes that are shown, in their order."""
        return order(self.frame, self.look) if self.frame else []

    def name(self, node: int) -> str:
        """Return what a node is called."""
        return clean(self.frame.nodes[node].name, self.marks) if self.frame else ""

    def trend(self, column: str, node: int | None, width: int) -> list[float]:
        """Return the last values of a column, those of a node or of the cluster, so many as have room."""
        column_place = PLACES[column]
        last = self.place + 1
        shown = self.frames[max(0, last - width) : last]
        if node is None:
            return [frame.cluster[column_place] for frame in shown]
        nan = float("nan")
        return [frame.nodes[node].cells[column_place] if node < len(frame.nodes) else nan for frame in shown]


def clock_time(time_s: float, *, date: bool = False) -> str:
    """Return a moment as local time."""
    moment = datetime.fromtimestamp(round(time_s, 1), timezone.utc).astimezone()
    tenth = f".{moment.microsecond // 100_000}" if moment.microsecond else ""
    return f"{moment:%Y-%m-%d %H:%M:%S}{tenth}" if date else f"{moment:%H:%M:%S}{tenth}"

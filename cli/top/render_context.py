"""The input to the functions that render the screen: frames, view state, screen size and symbols."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property

from cli.top.severity import order, severity
from cli.top.styled_text import FINE, Marks, clean
from cli.top.view_state import ViewState, position
from exporters.live.frame import Frame
from exporters.live.live_columns import COLUMN_INDEX


@dataclass(frozen=True)
class RenderContext:
    """Frames, view state, screen size and symbols.

    own     CPU and memory use of casstat top itself, as text.
    source  "live" or "recording".
    """

    frames: Sequence[Frame]
    view: ViewState
    width: int
    height: int
    marks: Marks = FINE
    own: str = ""
    source: str = "live"

    @property
    def frame_index(self) -> int:
        """The index of the selected frame; -1 if there is none."""
        return position(self.frames, self.view.at_s)

    @cached_property
    def frame(self) -> Frame | None:
        """The selected frame; None if there is none."""
        return self.frames[self.frame_index] if self.frames else None

    @cached_property
    def order(self) -> list[int]:
        """The indices of the visible nodes, in display order."""
        return order(self.frame, self.view) if self.frame else []

    @cached_property
    def severities(self) -> list[int]:
        """The severity of each node."""
        return [severity(node) for node in self.frame.nodes] if self.frame else []

    def name(self, node: int) -> str:
        return clean(self.frame.nodes[node].name, self.marks) if self.frame else ""

    def trend(self, column: str, node: int | None, width: int) -> list[float]:
        """Return a column's last `width` values up to the selected frame.

        The values are the node's or, if `node` is None, the cluster's.
        """
        column_index = COLUMN_INDEX[column]
        last = self.frame_index + 1
        shown = self.frames[max(0, last - width) : last]
        if node is None:
            return [frame.cluster[column_index] for frame in shown]
        nan = float("nan")
        return [frame.nodes[node].cells[column_index] if node < len(frame.nodes) else nan for frame in shown]

    def group_trend(self, column: str, location: str, width: int) -> list[float]:
        """Return a column's last `width` values of a data centre or rack; NaN where the frames do not contain it."""
        column_index, last = COLUMN_INDEX[column], self.frame_index + 1
        groups = [frame.groups.get(location) for frame in self.frames[max(0, last - width) : last]]
        return [float("nan") if group is None else group.cells[column_index] for group in groups]


def clock_time(time_s: float, *, date: bool = False) -> str:
    """Return a time as the local time of day, preceded by the date if `date` is true."""
    moment = datetime.fromtimestamp(round(time_s, 1), timezone.utc).astimezone()
    tenth = f".{moment.microsecond // 100_000}" if moment.microsecond else ""
    return f"{moment:%Y-%m-%d %H:%M:%S}{tenth}" if date else f"{moment:%H:%M:%S}{tenth}"

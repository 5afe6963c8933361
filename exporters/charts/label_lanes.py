"""Arranges labels in rows, without overlap."""

from dataclasses import dataclass, field

from exporters.charts.plot_page import SMALL_PT
from exporters.charts.text_escaping import shortened, width_px

LANE_PX = 15
_MAX_LANES = 4
_LABEL_PX = 230.0
_BETWEEN_PX = 8.0


@dataclass(frozen=True)
class PlacedLabel:
    """A label, its colour, its row (counted from the lowest), and the horizontal position of its middle in pixels."""

    text: str
    colour: str
    lane: int
    middle: float


@dataclass
class LabelLanes:
    """Rows of labels between two edges, filled from the lowest row; labels that do not fit are left out."""

    left: float
    right: float
    labels: list[PlacedLabel] = field(default_factory=list)
    _taken: list[list[tuple[float, float]]] = field(default_factory=list)

    @property
    def height(self) -> float:
        """The total height of the rows, in pixels."""
        return LANE_PX * len(self._taken)

    def add(self, text: str, colour: str, middle: float) -> None:
        """Add a label as close to `middle` as the edges allow, in the lowest row that has room for it."""
        text = shortened(text, SMALL_PT, _LABEL_PX)
        half = width_px(text, SMALL_PT) / 2
        middle = max(min(middle, self.right - half), self.left + half)
        low, high = middle - half - _BETWEEN_PX / 2, middle + half + _BETWEEN_PX / 2
        for lane in range(_MAX_LANES):
            if lane == len(self._taken):
                self._taken.append([])
            if all(high <= begin or low >= end for begin, end in self._taken[lane]):
                self._taken[lane].append((low, high))
                self.labels.append(PlacedLabel(text, colour, lane, middle))
                return

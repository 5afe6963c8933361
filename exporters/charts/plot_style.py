"""Colours and text of plots.

The palette is that of Okabe and Ito, distinguishable with any colour vision, on a light or dark background. Text is
safe for gnuplot scripts and the JavaScript inside an SVG.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from unicodedata import east_asian_width

from collector.node.metrics.requests import OPERATIONS
from exporters.texts import shown

_PALETTE = {
    "orange": "#E69F00",
    "sky": "#56B4E9",
    "green": "#009E73",
    "yellow": "#F0E442",
    "blue": "#0072B2",
    "vermillion": "#D55E00",
    "purple": "#CC79A7",
}
PERCENTILE_STYLES = {"p50": ("green", 7), "p95": ("orange", 5), "p99": ("tail", 9), "max": ("faint", 0)}
"""The colour and the points of each percentile, in all plots and in the report."""
OTHER_COLOURS = ("green", "orange", "sky", "yellow", "ink", "faint")
"""The colours of operations other than reads and writes, in their order."""
_POINTS = (7, 9, 5, 13, 11, 7, 5, 9)
OPERATION_STYLES = {
    operation.word: style
    for operation, style in zip(OPERATIONS, zip(("reads", "writes", *OTHER_COLOURS), _POINTS, strict=True), strict=True)
}
"""The colour and the points of each operation."""
# Viridis is perceptually uniform with any colour vision, and in greyscale.
_VIRIDIS = (
    *("#440154", "#482878", "#3E4A89", "#31688E", "#26828E"),
    *("#1F9E89", "#35B779", "#6DCD59", "#B4DE2C", "#FDE725"),
)


@dataclass(frozen=True)
class Theme:
    """The colours of a plot; each becomes a variable in the gnuplot script.

    dark  whether the background is dark; colour scales then omit their darkest colours, which would be invisible.
    """

    colours: dict[str, str]
    dark: bool = False

    @property
    def heat_map(self) -> tuple[str, ...]:
        """The colours of heat maps, from the lowest to the highest value."""
        return _VIRIDIS[2:] if self.dark else _VIRIDIS


THEMES = {
    "light": Theme(
        {
            "background": "#FFFFFF",
            "ink": "#1A1A1A",
            "faint": "#6B6B6B",
            "mark": "#8E8E8E",
            "grid": "#DCDCDC",
            "shade": "#EEEEEE",
            "alarm": "#C00000",
            "reads": _PALETTE["blue"],
            "writes": _PALETTE["vermillion"],
            "tail": _PALETTE["blue"],
            **_PALETTE,
        }
    ),
    "dark": Theme(
        {
            "background": "#181A1B",
            "ink": "#E8E6E3",
            "faint": "#A09B94",
            "mark": "#77797B",
            "grid": "#3A3E41",
            "shade": "#2A2D2F",
            "alarm": "#FF6B5E",
            "reads": _PALETTE["sky"],
            "writes": _PALETTE["orange"],
            "tail": _PALETTE["sky"],
            **_PALETTE,
        },
        dark=True,
    ),
}


# gnuplot misreads a doubled quote at the beginning of a single-quoted string, and two doubled quotes in a row: it
# executes the rest of the string as commands. Apostrophes are therefore replaced.
_APOSTROPHE = str.maketrans({"'": "\u2019"})
# An SVG keeps tooltips in JavaScript strings inside attributes; these characters could end the string or the attribute.
_LOOKALIKES = str.maketrans({"'": "\u2019", '"': "\u201d", "\\": "\u29f5", "`": "\u2018"})
# Approximate width of a character in DejaVu Sans, one of the widest fonts, as a fraction of the font size.
_LETTER_PX = 0.6
_PX_PER_POINT = 4 / 3
_MAX_LETTERS = 500
TITLE_PT, SUBTITLE_PT, TEXT_PT, SMALL_PT = 14, 9, 9, 8
LANE_PX = 15
_MAX_LANES = 4
_LABEL_PX = 230.0
_BETWEEN_PX = 8.0


def quoted(text: str) -> str:
    """Return the text as a single-quoted gnuplot string."""
    return f"'{shown(text, _MAX_LETTERS).translate(_APOSTROPHE)}'"


def hypertext(lines: Iterable[str]) -> str:
    r"""Return the lines as gnuplot hypertext; the `\n` between them is interpreted inside the SVG."""
    return "'" + r"\n".join(shown(line, 120).translate(_LOOKALIKES) for line in lines) + "'"


def heading(text: str) -> str:
    """Return the text as a column heading; double quotes are replaced, because gnuplot would interpret them."""
    return shown(text, 80).replace('"', "”")


def width_px(text: str, points: float) -> float:
    """Return the approximate width of the text, in pixels, at a font size of `points`."""
    letters = sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)
    return letters * _LETTER_PX * _PX_PER_POINT * points


def shortened(text: str, points: float, room_px: float) -> str:
    """Return the text, cut to a width of `room_px` if necessary; "" if fewer than three characters would remain."""
    text = shown(text, _MAX_LETTERS)
    if width_px(text, points) <= room_px:
        return text
    while text and width_px(text + "…", points) > room_px:
        text = text[:-1]
    return f"{text.rstrip()}…" if len(text) > 2 else ""


def wrapped(text: str, points: float, room_px: float, limit: int) -> list[str]:
    """Return the text as at most `limit` lines, broken between words; an ellipsis replaces the rest."""
    lines: list[str] = []
    for word in shown(text, 4 * _MAX_LETTERS).split():
        joined = f"{lines[-1]} {word}" if lines else ""
        if joined and width_px(joined, points) <= room_px:
            lines[-1] = joined
        else:
            lines.append(shortened(word, points, room_px))
    if len(lines) > limit:
        lines = [*lines[: limit - 1], shortened(f"{lines[limit - 1]} {lines[limit]} …", points, room_px)]
    return lines


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

"""Colours: the Okabe-Ito palette, distinguishable with any colour vision, on a light or dark background."""

from dataclasses import dataclass

from collector.node.metrics.requests import OPERATIONS

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

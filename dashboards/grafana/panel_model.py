"""Dashboards as plain data: panels with their queries, layout and descriptions.

They depend on neither a store, which renders the queries, nor Grafana's SDK.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

from dashboards.expression import Difference, Expression, Quantile, Ratio
from dashboards.signals.all_signals import SIGNALS
from dashboards.signals.signal import Signal
from exporters.charts.plot_style import THEMES

_COLOURS = THEMES["light"].colours
BLUE, ORANGE, GREEN = _COLOURS["blue"], _COLOURS["orange"], _COLOURS["green"]
VERMILLION, PURPLE = _COLOURS["vermillion"], _COLOURS["purple"]
PALETTE = (BLUE, ORANGE, GREEN, PURPLE, _COLOURS["sky"], VERMILLION, _COLOURS["yellow"])
GOOD, WARNING, CRITICAL = GREEN, ORANGE, VERMILLION
COLUMNS = 24
DEFAULT_ABSENCE = "Absent if the agent is down, cannot reach the node or does not provide this metric."


class Split(Enum):
    """The grouping of a panel's series."""

    VARIABLE = "variable"
    """As selected in the dashboard variable $by: cluster, data centre, rack or node."""
    NODE = "node"
    CLUSTER = "cluster"


@dataclass(frozen=True)
class Line:
    """A signal in a panel. Its legend begins with `name`, which is "" if the labels alone suffice."""

    signal_name: str
    name: str = ""

    @property
    def signal(self) -> Signal:
        """The signal named `signal_name`."""
        return SIGNALS[self.signal_name]


@dataclass(frozen=True)
class Panel:
    """The fields common to all kinds of panels.

    title   the displayed title; "" for the first signal's title.
    text    a paragraph that precedes the signals' descriptions.
    labels  additional labels that distinguish series.
    width   the width in grid columns; a dashboard has 24.
    """

    lines: tuple[Line, ...] = ()
    title: str = ""
    text: str = ""
    split: Split = Split.VARIABLE
    labels: tuple[str, ...] = ()
    width: int = 8
    height: int = 7

    @property
    def name(self) -> str:
        """The displayed title."""
        return self.title or self.lines[0].signal.title


@dataclass(frozen=True)
class TimeSeries(Panel):
    """Lines over time; with `top`, Prometheus shows only the $topn worst series of the time range."""

    top: bool = False


@dataclass(frozen=True)
class Spread(Panel):
    """The percentile of all nodes combined, and the percentiles of the best and the worst node."""


@dataclass(frozen=True)
class Heatmap(Panel):
    """A histogram's distribution over time."""


@dataclass(frozen=True)
class Stat(Panel):
    """The latest value in large type over a sparkline.

    severity  the name of a signal whose latest value determines the colour instead of the panel's own, for Prometheus;
              "" for none.
    """

    severity: str = ""


@dataclass(frozen=True)
class WorstTable(Panel):
    """A table of the worst value of each series in the time range; Prometheus shows only the $topn worst series."""


@dataclass(frozen=True)
class StateTimeline(Panel):
    """States over time: 1 is good, 0 is bad."""


@dataclass(frozen=True)
class TextPanel(Panel):
    """Text without a query."""


@dataclass(frozen=True)
class Row:
    """Panels under a common title."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Dashboard:
    """A dashboard. If `tables` is true, it has variables for keyspaces and tables."""

    name: str
    title: str
    description: str
    rows: tuple[Row, ...] = ()
    tables: bool = False


def lines(*signals: str | tuple[str, str]) -> tuple[Line, ...]:
    """Return a line for each signal, given as its name or as a pair of its name and the beginning of its legend."""
    return tuple(Line(entry) if isinstance(entry, str) else Line(*entry) for entry in signals)


def graphs(*signals: str, **options: Any) -> tuple[TimeSeries, ...]:
    """Return a panel for each signal, all with the same options."""
    return tuple(TimeSeries(lines(signal), **options) for signal in signals)


def table_graphs(*signals: str) -> tuple[TimeSeries, ...]:
    """Return a panel with the worst tables for each signal."""
    return graphs(*signals, split=Split.CLUSTER, labels=("keyspace", "table"), top=True)


class GridPosition(NamedTuple):
    """A panel's top-left corner and size, in grid units."""

    x: int
    y: int
    width: int
    height: int


def arrange(panels: Sequence[Panel], y: int) -> Iterator[tuple[Panel, GridPosition]]:
    """Yield panels with their positions; the first one is at the vertical position `y`.

    Raises ValueError for a panel that is wider than the dashboard.
    """
    x = row_height = 0
    for panel in panels:
        if panel.width > COLUMNS:
            raise ValueError(f"{panel.name}: {panel.width} columns exceed the dashboard's {COLUMNS}")
        if x + panel.width > COLUMNS:
            x, y, row_height = 0, y + row_height, 0
        yield panel, GridPosition(x, y, panel.width, panel.height)
        x, row_height = x + panel.width, max(row_height, panel.height)


def description(panel: Panel) -> str:
    """Return the meaning of a panel's signals, and the reasons why they may be absent."""
    paragraphs = [panel.text] if panel.text else []
    lines = {line.signal.help: line for line in panel.lines}
    for text, line in lines.items():
        paragraphs.append(f"{line.signal.title}: {text}" if len(lines) > 1 else text)
    return "\n\n".join([*paragraphs, *absences(panel)])


def absences(panel: Panel) -> list[str]:
    """Return the distinct reasons why a panel may be empty."""
    return list(dict.fromkeys(line.signal.absent or DEFAULT_ABSENCE for line in panel.lines))


def no_value(panel: Panel) -> str:
    """Return the text that an empty panel displays."""
    return " ".join(absences(panel))


def has_quantile(panel: Panel) -> bool:
    """Return whether a panel shows percentiles."""
    return any(isinstance(line.signal.expression, Quantile) for line in panel.lines)


def may_be_undefined(expression: Expression) -> bool:
    """Return whether an expression may be undefined (NaN in PromQL), such as 0 / 0 or a percentile of no requests."""
    if isinstance(expression, Difference):
        return may_be_undefined(expression.left) or may_be_undefined(expression.right)
    return isinstance(expression, Quantile | Ratio)


NO_STATE = -1
"""The value of a state timeline without any series."""


@dataclass(frozen=True)
class Query:
    """One query of a panel.

    legend        Grafana's template for the series names.
    form          "series" for values over time, "table" for one value per series, "buckets" for a heat map, or "math"
                  for an expression that Grafana evaluates over the panel's other queries.
    visible       whether the panel displays the result; False for an operand of a "math" query.
    min_interval  the minimum time between two values, such as "60s"; "" for the panel's minimum.
    colour        the fixed colour of the values; "" for the panel's colours.
    """

    text: str
    legend: str = ""
    form: str = "series"
    visible: bool = True
    min_interval: str = ""
    colour: str = ""


def ref_id(index: int) -> str:
    """Return the letter by which Grafana refers to a panel's query: "A" for index 0."""
    return chr(ord("A") + index)


@dataclass(frozen=True)
class Variable:
    """A variable whose values come from the store.

    all_value  the regular expression for the "All" option; it must not match series without the label. If it is "",
               Grafana uses an alternation of all values.
    """

    name: str
    title: str
    query: str
    all_value: str = ".+"


@dataclass(frozen=True)
class Annotation:
    """An annotation that is displayed in every panel.

    text      the template of the displayed text.
    tags      the labels that are displayed as tags.
    at_value  whether the series' value is the time of the event, in milliseconds.
    """

    name: str
    query: str
    colour: str
    text: str
    tags: tuple[str, ...] = ("node",)
    at_value: bool = False
    enabled: bool = True


@dataclass(frozen=True)
class JsonFields:
    """JSON for which the SDK has no class with all fields. The SDK expects a builder, so this is its own builder."""

    fields: Mapping[str, object]

    def build(self) -> "JsonFields":
        return self

    def to_json(self) -> Mapping[str, object]:
        """Return the fields for the SDK's JSON encoder."""
        return self.fields

"""Dashboards as plain data: panels name their signals and depend on neither a store nor Grafana's SDK."""

from dataclasses import dataclass, field
from enum import Enum

from dashboards.signals.all_signals import SIGNALS
from dashboards.signals.signal import Signal


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
    stacked: bool = False


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
    rows: tuple[Row, ...] = field(default=())
    tables: bool = False


def lines(*signals: str | tuple[str, str]) -> tuple[Line, ...]:
    """Return a line for each signal, given as its name or as a pair of its name and the beginning of its legend."""
    return tuple(Line(entry) if isinstance(entry, str) else Line(*entry) for entry in signals)

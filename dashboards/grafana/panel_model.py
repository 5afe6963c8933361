"""What a board is made of, as plain data: panels show signals by name, and know nothing of stores or of Grafana."""

from dataclasses import dataclass, field
from enum import Enum

from dashboards.signals.all_signals import SIGNALS
from dashboards.signals.signal import Signal


class Split(Enum):
    """What stays apart."""

    CHOSEN = "chosen"
    """What the board's variable $by says: clusters, data centres, racks or nodes."""
    NODE = "node"
    CLUSTER = "cluster"


@dataclass(frozen=True)
class Line:
    """A signal in a panel; `name` is what its lines are called before what they are of, "" when that is enough."""

    signal: str
    name: str = ""

    @property
    def of(self) -> Signal:
        """The signal itself."""
        return SIGNALS[self.signal]


@dataclass(frozen=True)
class Panel:
    """What all panels have.

    title   "" for the first signal's own.
    text    what to say besides what the signals say of themselves.
    each    labels of the series that stay apart too.
    width   of the board's 24.
    """

    lines: tuple[Line, ...] = ()
    title: str = ""
    text: str = ""
    split: Split = Split.CHOSEN
    each: tuple[str, ...] = ()
    width: int = 8
    height: int = 7

    @property
    def name(self) -> str:
        """The panel's title."""
        return self.title or self.lines[0].of.title


@dataclass(frozen=True)
class Graph(Panel):
    """Lines over time; with `top` only the $topn worst at each moment."""

    top: bool = False
    stacked: bool = False


@dataclass(frozen=True)
class Spread(Panel):
    """A percentile of all nodes together, between those of the best and of the worst node."""


@dataclass(frozen=True)
class Heatmap(Panel):
    """How many events took how long, over time."""


@dataclass(frozen=True)
class Number(Panel):
    """The newest value, large, with its past behind it."""


@dataclass(frozen=True)
class Worst(Panel):
    """A table of the $topn worst at their worst moment."""


@dataclass(frozen=True)
class States(Panel):
    """What is well and what is not, over time: 1 or 0."""


@dataclass(frozen=True)
class Note(Panel):
    """Words alone."""


@dataclass(frozen=True)
class Row:
    """Panels under a title."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True)
class Dashboard:
    """A board; `tables` says whether keyspaces and tables may be chosen."""

    name: str
    title: str
    text: str
    rows: tuple[Row, ...] = field(default=())
    tables: bool = False


def of(*signals: str | tuple[str, str]) -> tuple[Line, ...]:
    """Return lines of signals, those with a name of their own given as pairs."""
    return tuple(Line(each) if isinstance(each, str) else Line(*each) for each in signals)

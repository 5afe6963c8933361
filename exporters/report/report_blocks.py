"""The parts of a report, independent of its format: paragraphs, commands, tables, charts and sections."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from exporters.charts.axes import Scale, TimeAxis
from exporters.charts.plot_columns import Values

WIDTH = 1000.0
"""The width of every panel; it is stretched to the width of the page."""


@dataclass(frozen=True)
class Panel:
    """One panel.

    legend   the styles (see `html_report.py`) of the lines or points, by name.
    content  SVG in a coordinate system that is WIDTH wide and as high as the panel, with the origin at the top left.
    """

    title: str
    scale: Scale
    height: int
    legend: Mapping[str, str]
    content: str


@dataclass(frozen=True)
class Tic:
    """A label on the horizontal axis; on a narrow screen, it is hidden if `is_minor` is true."""

    x: float
    label: str
    is_minor: bool


@dataclass(frozen=True)
class Span:
    """A part of the horizontal axis: a phase with a name, or a gap, which has the style "alarm"."""

    begin: float
    end: float
    name: str
    style: str


@dataclass(frozen=True)
class Event:
    """Events at one position, as lines of text."""

    x: float
    lines: Sequence[str]


@dataclass(frozen=True)
class Points:
    """The values that the script shows: positions from 0 to WIDTH, their labels, and the values of each name.

    labels  empty if the positions are times.
    units   the unit of each name.
    """

    x: Sequence[float]
    values: Mapping[str, Values]
    units: Mapping[str, str]
    labels: Sequence[str] = ()


@dataclass(frozen=True)
class Chart:
    """A chart.

    name   an identifier that is unique on the page.
    texts  the text alternative, one statement each.
    time_axis  the horizontal axis, if it is one of time.
    """

    name: str
    title: str
    x_title: str
    panels: Sequence[Panel]
    tics: Sequence[Tic]
    points: Sequence[Points]
    texts: Sequence[str]
    spans: Sequence[Span] = ()
    events: Sequence[Event] = ()
    time_axis: TimeAxis | None = None


@dataclass(frozen=True)
class Paragraph:
    """A paragraph; `is_problem` is true if it states that something failed or is missing."""

    text: str
    is_problem: bool = False


@dataclass(frozen=True)
class Command:
    """A command line."""

    text: str


@dataclass(frozen=True)
class Table:
    """A table; its first `text_columns` columns are left-aligned, and its first column has the row headers."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    text_columns: int = 1


Block = Paragraph | Command | Table | Chart


@dataclass(frozen=True)
class Section:
    """A section with a title."""

    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Report:
    """A report: its title, a line below the title, and its sections."""

    title: str
    subtitle: str
    sections: Sequence[Section]

"""The facts from which a report is made, and its parts: paragraphs, commands, tables, charts and sections.

The parts are independent of the report's format.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from collector.load_results.client_result import ClientResult
from collector.merge.coverage import NodeCoverage
from collector.merge.merge_job import Merged
from collector.runs.run import Run
from exporters.charts.axes import Scale, TimeAxis
from exporters.charts.merged_plot_data import NodeRows, run_of
from exporters.charts.plot_data import Phase, PlotData, Values
from exporters.results.comparison.run_settings import RunSettings
from exporters.results.saturation.saturation import Saturation
from exporters.results.summary.phase_summary import PhaseSummary
from exporters.rows.operation_columns import Operations

if TYPE_CHECKING:
    # It requires numpy, which is optional.
    from exporters.results.comparison.comparison import Report as Comparison


@dataclass(frozen=True)
class Cost:
    """The cost of the cluster per hour, and its currency."""

    per_hour: float
    currency: str


@dataclass(frozen=True)
class Baseline:
    """The run with which the report compares its run.

    settings    its metadata and the settings of its nodes.
    comparison  the comparison of the baseline (A) with the run (B); None if they cannot be compared.
    """

    settings: RunSettings
    comparison: "Comparison | None" = None


@dataclass(frozen=True)
class ReportData:
    """The data of a report.

    settings    the run's metadata and the settings of its nodes.
    merged      the merged recordings; its phases are those of `run`, and those that are not measured are warm-ups.
    clock       the largest difference between the nodes' own clocks, as text.
    phases      the summaries of the measured phases, followed by their total if there are several.
    lost        a lower bound on the number of ticks lost in these phases, by node.
    gaps        the nodes with missing intervals in the whole run.
    same        the names of the run's nodes that are one node, which several agents recorded.
    results     the results of load generators.
    cost        None if it is unknown.
    baseline    None if there is no baseline.
    saturation  which resource limited the run; None if it is unknown.
    """

    settings: RunSettings
    merged: PlotData
    clock: str
    phases: Sequence[PhaseSummary]
    lost: Mapping[str, int] = field(default_factory=dict)
    results: Sequence[ClientResult] = ()
    cost: Cost | None = None
    baseline: Baseline | None = None
    saturation: Saturation | None = None
    gaps: Sequence[NodeCoverage] = ()
    same: Sequence[Sequence[str]] = ()

    @property
    def run(self) -> Run:
        return self.settings.run

    @property
    def total(self) -> PhaseSummary | None:
        """The summary of all measured phases; None if no phase is long enough."""
        return self.phases[-1] if self.phases else None

    @property
    def zone_s(self) -> int:
        """The offset of local time from UTC, in seconds."""
        return self.merged.zone_s


def merged_run(run: Run, merged: Merged[NodeRows], operations: Operations) -> PlotData:
    """Return a run's merged recordings as in `ReportData.merged`."""
    phases = [Phase(phase.begin_s, phase.end_s, phase.name, not phase.measured) for phase in run.phases]
    return replace(run_of(merged, operations, run.name), phases=phases)


WIDTH = 1000.0
"""The width of every panel; it is stretched to the width of the page."""


@dataclass(frozen=True)
class ChartLine:
    """Values at positions from 0 to WIDTH; the script shows them. Their style is one of those in `report.py`."""

    name: str
    style: str
    unit: str
    x: Sequence[float]
    values: Values


@dataclass(frozen=True)
class Panel:
    """One panel.

    is_dotted  whether the lines are drawn as dots.
    content    SVG that is drawn instead of the lines, in a coordinate system that is WIDTH wide and as high as the
               panel, with the origin at the top left.
    """

    title: str
    scale: Scale
    height: int
    lines: Sequence[ChartLine]
    is_dotted: bool = False
    content: str = ""

    @property
    def legend(self) -> dict[str, str]:
        """The styles of the drawn lines, by name."""
        return {} if self.content else {line.name: line.style for line in self.lines}


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
class Chart:
    """A chart.

    name   an identifier that is unique on the page.
    texts  the text alternative, one statement each.
    labels  those of the lines' positions; empty if the positions are times.
    time_axis  the horizontal axis, if it is one of time.
    """

    name: str
    title: str
    x_title: str
    panels: Sequence[Panel]
    tics: Sequence[Tic]
    texts: Sequence[str]
    labels: Sequence[str] = ()
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

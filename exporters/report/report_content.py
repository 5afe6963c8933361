"""The content of a report: its sections in their order."""

from collections.abc import Callable, Iterable, Sequence

from exporters.charts.plot_data import span_text
from exporters.report import chart_sections, table_sections
from exporters.report.report_blocks import Block, Report, Section
from exporters.report.report_data import ReportData
from exporters.report.verdict import first_saturated, verdict
from exporters.texts import shown

SECTIONS: Sequence[tuple[str, Callable[[ReportData], Iterable[Block]]]] = (
    ("Verdict", verdict),
    ("Results by phase", table_sections.phase_tables),
    ("Difference from the baseline", table_sections.baseline_comparison),
    ("Over time", chart_sections.over_time),
    ("Latency", chart_sections.latency_distribution),
    ("Each node", chart_sections.each_node),
    ("What saturated first", first_saturated),
    ("Highest values", table_sections.highest_values),
    ("Events", chart_sections.events),
    ("Settings", table_sections.settings),
    ("Nodes, versions and clocks", table_sections.nodes_and_clocks),
    ("How to reproduce the run", table_sections.reproduction),
)
"""The titles and the contents of all sections."""


def report_of(data: ReportData) -> Report:
    """Return the report with those sections that have content."""
    sections = [Section(title, blocks) for title, content in SECTIONS if (blocks := [*content(data)])]
    return Report(shown(data.run.name), span_text(data.merged), sections)

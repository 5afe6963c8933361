"""The content of a report: its sections in their order."""

from exporters.charts.plot_data import span_text
from exporters.report.report_blocks import Report, Section
from exporters.report.report_data import ReportData
from exporters.report.sections.baseline_comparison import baseline_comparison
from exporters.report.sections.each_node import each_node
from exporters.report.sections.events import events
from exporters.report.sections.first_saturated import first_saturated
from exporters.report.sections.highest_values import highest_values
from exporters.report.sections.latency_distribution import latency_distribution
from exporters.report.sections.nodes_and_clocks import nodes_and_clocks
from exporters.report.sections.over_time import over_time
from exporters.report.sections.phase_tables import phase_tables
from exporters.report.sections.reproduction import reproduction
from exporters.report.sections.settings import settings
from exporters.report.sections.verdict import verdict
from exporters.texts import shown

SECTIONS = (
    verdict,
    phase_tables,
    baseline_comparison,
    over_time,
    latency_distribution,
    each_node,
    first_saturated,
    highest_values,
    events,
    settings,
    nodes_and_clocks,
    reproduction,
)


def report_of(data: ReportData) -> Report:
    """Return the report with those sections that have content."""
    sections: list[Section] = [section for make in SECTIONS if (section := make(data)).blocks]
    return Report(shown(data.run.name), span_text(data.merged), sections)

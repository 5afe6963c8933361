"""The section with the run's marks and the events of its nodes."""

from collector.printable import count_text
from exporters.gnuplot.plot_data import Mark
from exporters.report.report_blocks import Block, Paragraph, Section, Table
from exporters.report.report_data import ReportData
from exporters.report.report_texts import clock_text, shown

MAX_ROWS = 200
_RUN = "run"
"""The kind of events with which agents log the beginning and the marks of runs."""


def events_of(data: ReportData) -> list[Mark]:
    """Return the run's marks and the nodes' events in chronological order, without the nodes' copies of the marks."""
    marks = [Mark(mark.time_s, "", "mark", mark.text) for mark in data.run.marks]
    events = [event for event in data.merged.marks if event.kind != _RUN]
    return sorted([*marks, *events], key=lambda mark: mark.time_s)


def events(data: ReportData) -> Section:
    marks = events_of(data)
    if not marks:
        return Section("Events", [Paragraph("No marks, and no events on the nodes.")])
    rows = [
        [clock_text(mark.time_s, data.zone_s), shown(mark.kind), shown(mark.node) or "run", shown(mark.text)]
        for mark in marks[:MAX_ROWS]
    ]
    blocks: list[Block] = [Table("Marks of the run, and events on the nodes", ["at", "kind", "on", "text"], rows, 4)]
    if len(marks) > MAX_ROWS:
        blocks.append(Paragraph(f"{count_text(len(marks) - MAX_ROWS, 'later event')} not shown."))
    return Section("Events", blocks)

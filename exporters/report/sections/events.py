"""The section with the run's marks and the events of its nodes."""

from functools import partial

from collector.merge.coverage import NO_ANSWER
from collector.printable import count_text
from collector.runs.run_texts import step_text
from exporters.charts.plot_data import Mark
from exporters.report.report_blocks import Block, Paragraph, Section, Table
from exporters.report.report_data import ReportData
from exporters.results.summary.phase_summary import gap_text
from exporters.texts import clock_text, shown

MAX_ROWS = 200
_RUN = "run"
"""The kind of events with which agents log the beginning and the marks of runs."""


def events_of(data: ReportData) -> list[Mark]:
    """Return the run's marks, and the nodes' events and gaps, in chronological order.

    The nodes' copies of the marks are left out, and so are single intervals that a busy machine did not sample.
    """
    marks = [Mark(mark.time_s, "", "mark", mark.text) for mark in data.run.marks]
    steps = [Mark(step.time_s, "", "clock", step_text(step)) for step in data.run.clock_steps]
    events = [event for event in data.merged.marks if event.kind != _RUN]
    gaps = [
        Mark(gap.begin_s, node.node, gap.cause, gap_text(gap, partial(clock_text, zone_s=data.zone_s)))
        for node in data.gaps
        for gap in node.gaps
        if gap.cause == NO_ANSWER or gap.intervals > 1
    ]
    return sorted([*marks, *steps, *events, *gaps], key=lambda mark: mark.time_s)


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

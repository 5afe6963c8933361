"""The section with throughput and p99 over time, the client's above the cluster's, and the range of the throughput."""

from exporters.charts.plot_data import CLUSTER, Mark, missing
from exporters.report.charts.client_lines import client_lines
from exporters.report.charts.time_chart import (
    Annotations,
    TimePanel,
    node_lines,
    other_lines,
    resource_panels,
    slowest_line,
    time_chart,
)
from exporters.report.report_blocks import Section
from exporters.report.report_data import ReportData
from exporters.report.sections.events import events_of
from exporters.report.sections.throughput_table import throughput_table
from exporters.texts import clock_text, shown

# The maximum number of gaps in the text alternative.
_MAX_GAPS = 10


def over_time(data: ReportData) -> Section:
    run = data.merged
    begin_s = run.times[0] - run.interval_s if run.times else 0.0
    end_s = run.times[-1] if run.times else 0.0
    client = client_lines(data.results, begin_s, end_s, run.interval_s)
    server, (other_rates, other_tails) = node_lines(run, CLUSTER), other_lines(run, CLUSTER)
    missing_nodes = missing(run)
    gaps = missing_nodes.gaps
    panels = [
        TimePanel("client throughput, operations/s", client[:1]),
        TimePanel("client p99, ms", client[1:], log=True),
        TimePanel("server throughput, operations/s", [*server[:2], *other_rates]),
        TimePanel("server p99, ms", [slowest_line(run, CLUSTER), *server[2:], *other_tails], log=True),
        *resource_panels(run),
    ]
    texts = [
        f"{gap.text(len(run.nodes))} from {clock_text(gap.begin_s, run.zone_s)} to {clock_text(gap.end_s, run.zone_s)}"
        for gap in gaps
    ]
    marks = [Mark(mark.time_s, shown(mark.node), mark.kind, shown(mark.text)) for mark in events_of(data)]
    chart = time_chart(
        "over-time", "Throughput and p99 over time", run, panels, Annotations(gaps, marks), texts[:_MAX_GAPS]
    )
    return Section("Over time", [*([chart] if chart else []), *throughput_table(data, missing_nodes.incomplete)])

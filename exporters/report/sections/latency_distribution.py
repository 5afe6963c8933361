"""The section with the distribution of latencies: by percentile, over time, and against throughput."""

from math import inf

from collector.node.metrics.requests import OPERATIONS
from exporters.report.latency_charts import latency_heat_map, percentile_chart, scatter_chart
from exporters.report.report_blocks import Section
from exporters.report.report_data import ReportData
from exporters.results.summary.client_values import combined_latency, total_within


def latency_distribution(data: ReportData) -> Section:
    total = data.total
    begin_s, end_s = (total.begin_s, total.end_s) if total else (-inf, inf)
    totals = [total_within(operation, begin_s, end_s) for result in data.results for operation in result.operations]
    kind, client = combined_latency(total for total in totals if total)
    charts = [
        percentile_chart(data, client, kind),
        *(latency_heat_map(data.merged, operation) for operation in OPERATIONS),
        scatter_chart(data.merged),
    ]
    return Section("Latency", [chart for chart in charts if chart])

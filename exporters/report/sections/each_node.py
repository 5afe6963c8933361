"""The section with a chart for each node."""

from collector.printable import count_text
from exporters.report.report_blocks import Block, Paragraph, Section
from exporters.report.report_data import ReportData
from exporters.report.time_charts import node_charts


def each_node(data: ReportData) -> Section:
    charts = node_charts(data.merged)
    blocks: list[Block] = [*charts]
    others = len(data.merged.nodes) - len(charts)
    if charts and others:
        text = f"Not shown: {count_text(others, 'other node')} without values, or with a lower p99."
        blocks.append(Paragraph(text))
    return Section("Each node", blocks)

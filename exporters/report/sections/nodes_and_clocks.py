"""The section with the nodes of the run: versions, intervals, samples and clocks."""

from collector.printable import count_text
from collector.runs.run import RunNode
from exporters.report.report_blocks import Block, Paragraph, Section, Table
from exporters.report.report_data import ReportData
from exporters.texts import shown

_HEADER = (
    "node",
    "Cassandra",
    "casstat",
    "interval",
    "samples",
    "lost",
    "missing intervals",
    "clock offset",
    "problem",
)


def nodes_and_clocks(data: ReportData) -> Section:
    blocks: list[Block] = [Table("Nodes", _HEADER, [_row(data, node, is_host=False) for node in data.run.nodes], 3)]
    if data.run.client_hosts:
        hosts = [_row(data, host, is_host=True) for host in data.run.client_hosts]
        blocks.append(Table("Client hosts", _HEADER, hosts, 3))
    if len(data.run.nodes) > 1:
        blocks.append(Paragraph(f"The nodes' own clocks: {data.clock}."))
    blocks += [
        Paragraph(f"{shown(result.source)}: {shown(text)}")
        for result in data.results
        for text in (f"client result of {result.tool}", *result.notes)
    ]
    return Section("Nodes, versions and clocks", blocks)


def _row(data: ReportData, node: RunNode, *, is_host: bool) -> list[str]:
    settings = data.settings.nodes.get(node.name)
    lost = None if is_host else data.lost.get(node.name)
    return [
        shown(node.name or node.address) or "-",
        "-" if is_host or settings is None else shown(settings.cassandra) or "-",
        shown(node.casstat) or "-",
        "-" if node.interval_s is None else f"{node.interval_s:g} s",
        f"{node.ticks:,}" if node.folder else "-",
        "-" if lost is None else f"{lost:,}",
        "-" if is_host else _missing_text(data, node),
        _clock_text(node),
        shown(node.problem) or "-",
    ]


def _missing_text(data: ReportData, node: RunNode) -> str:
    """Return how many intervals are missing in the measured phases; "-" if that is unknown."""
    if data.total is None or "node_intervals_missing" not in data.total.values:
        return "-"
    missing = next((known for known in data.total.incomplete if known.node == (node.name or node.address)), None)
    return "0" if missing is None else f"{missing.missing} of {missing.intervals}"


def _clock_text(node: RunNode) -> str:
    """Return the last measurement of the node's clock, with its error bound."""
    if not node.clocks:
        return "-"
    clock = node.clocks[-1]
    measured = count_text(len(node.clocks), "measurement")
    # Adding zero removes the sign of a negative zero.
    offset_ms = round(1000 * clock.offset_s, 1) + 0.0
    return f"{offset_ms:+.1f} ms ± {1000 * clock.error_s:.1f} ms ({measured})"

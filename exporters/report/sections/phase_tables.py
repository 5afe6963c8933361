"""The section with the figures of each phase, as the server and the clients measured them, and the cost."""

from collections.abc import Sequence
from functools import partial

from collector.node.metrics.requests import ERRORS
from exporters.report.report_blocks import Block, Paragraph, Section, Table
from exporters.report.report_data import Cost, ReportData
from exporters.report.sections.verdict import latency_text
from exporters.results.summary.phase_summary import PhaseSummary, nodes_text
from exporters.results.summary.summary_text import (
    CLIENT_COLUMNS,
    OPERATION_COLUMNS,
    few_values_texts,
    incomplete_texts,
    number_text,
    operation_rows,
    time_text,
    unknown_rate_texts,
)
from exporters.rows.operation_columns import TOTAL_RATE
from exporters.texts import clock_text, shown, value_text

_SECONDS_PER_HOUR, _MILLION = 3600, 1_000_000


def phase_tables(data: ReportData) -> Section:
    if not data.phases:
        return Section("Results by phase", [])
    blocks: list[Block] = [_server(data.phases)]
    texts = incomplete_texts(data.phases, partial(clock_text, zone_s=data.zone_s))
    blocks += [Paragraph(f"{shown(text)}.") for text in texts]
    blocks += _client(data.phases)
    blocks += [Paragraph(f"{shown(text)}.", is_problem=True) for text in unknown_rate_texts(data.phases)]
    blocks += [Paragraph(f"{shown(text)}.", is_problem=True) for text in few_values_texts(data.phases)]
    if data.cost is not None:
        blocks += _costs(data.phases, data.cost)
    blocks.append(
        Paragraph(
            "Percentiles are computed from bucket counts summed over intervals and nodes. A phase covers the intervals"
            " that lie completely inside it, and time is their length; n is the number of latencies; warm-up and"
            " cool-down are not included. A dash means that a value is unknown."
        )
    )
    return Section("Results by phase", blocks)


def _server(phases: Sequence[PhaseSummary]) -> Table:
    has_nodes = any(nodes_text(phase.values) for phase in phases)
    rows = [
        [
            shown(phase.name),
            title,
            time_text(phase),
            *([nodes_text(phase.values) or "all"] if has_nodes else []),
            *cells,
        ]
        for phase in phases
        for title, *cells in operation_rows(phase, phases)
    ]
    header = [
        "phase",
        "",
        "time",
        *(["nodes"] if has_nodes else []),
        *(name for _, name, _ in OPERATION_COLUMNS),
        *ERRORS,
    ]
    return Table("On the server; latencies in ms", header, rows, 2)


def _client(phases: Sequence[PhaseSummary]) -> list[Block]:
    """Return the table of client results; [] if no phase has a known throughput."""
    rows = [
        [
            shown(phase.name),
            latency_text(phase) if phase.values.get("client_latency") else "-",
            *(number_text(phase.values.get(name), digits) for name, _, digits in CLIENT_COLUMNS),
        ]
        for phase in phases
        if "client_ops_per_s" in phase.values
    ]
    if not rows:
        return [] if unknown_rate_texts(phases) else [Paragraph("The run has no client results.")]
    return [
        Table(
            "As measured by the client; latencies in ms",
            ["phase", "latency", *(h for _, h, _ in CLIENT_COLUMNS)],
            rows,
            2,
        )
    ]


def _costs(phases: Sequence[PhaseSummary], cost: Cost) -> list[Block]:
    rows = []
    for phase in phases:
        rate, source = _rate(phase)
        per_million = cost.per_hour / _SECONDS_PER_HOUR / rate * _MILLION if rate else None
        rows.append([shown(phase.name), source, number_text(rate, 0), number_text(per_million, 4)])
    currency = shown(cost.currency)
    header = ["phase", "measured by", "ops/s", f"{currency} per million operations"]
    return [Table(f"Cost at {value_text(cost.per_hour)} {currency} per hour", header, rows, 2)]


def _rate(phase: PhaseSummary) -> tuple[float | None, str]:
    """Return the operations per second and where they were measured; None if they are unknown."""
    completed = phase.values.get("client_ops_per_s")
    if isinstance(completed, int | float):
        return completed, "client"
    rate = phase.values.get(TOTAL_RATE)
    return (rate if isinstance(rate, int | float) else None), "server"

"""The sections with tables: the figures of each phase, comparisons, settings, nodes, and how to repeat the run."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from shlex import join

from collector.node.metrics.requests import ERRORS
from collector.printable import count_text
from collector.redaction.secret_forms import REDACTED
from collector.runs.run import COOL_DOWN, Run, RunNode
from exporters.report.report_blocks import Block, Command, Cost, Paragraph, ReportData, Table
from exporters.report.verdict import latency_text
from exporters.results.comparison.run_settings import SettingPair, setting_pairs, settings_texts
from exporters.results.summary.phase_summary import CLIENT_PEAKS, PEAKS, PROCESS_CPU, Peak, PhaseSummary, nodes_text
from exporters.results.summary.summary_text import (
    CLIENT_COLUMNS,
    OPERATION_COLUMNS,
    PEAK_LABELS,
    few_values_texts,
    incomplete_texts,
    number_text,
    operation_rows,
    time_text,
    unknown_rate_texts,
)
from exporters.rows.operation_columns import TOTAL_RATE
from exporters.texts import clock_text, list_text, shown, value_text

_SECONDS_PER_HOUR, _MILLION = 3600, 1_000_000


def phase_tables(data: ReportData) -> Iterator[Block]:
    if not data.phases:
        return
    yield _server(data.phases)
    for text in incomplete_texts(data.phases, partial(clock_text, zone_s=data.zone_s)):
        yield Paragraph(f"{shown(text)}.")
    yield from _client(data.phases)
    for text in (*unknown_rate_texts(data.phases), *few_values_texts(data.phases)):
        yield Paragraph(f"{shown(text)}.", is_problem=True)
    if data.cost is not None:
        yield _costs(data.phases, data.cost)
    yield Paragraph(
        "Percentiles are computed from bucket counts summed over intervals and nodes. A phase covers the intervals"
        " that lie completely inside it, and time is their length; n is the number of latencies; warm-up and"
        " cool-down are not included. A dash means that a value is unknown."
    )


def _server(phases: Sequence[PhaseSummary]) -> Table:
    nodes = [nodes_text(phase.values) for phase in phases]
    rows = [
        [shown(phase.name), title, time_text(phase), *([text or "all"] if any(nodes) else []), *cells]
        for phase, text in zip(phases, nodes, strict=True)
        for title, *cells in operation_rows(phase, phases)
    ]
    names = (name for _, name, _ in OPERATION_COLUMNS)
    header = ["phase", "", "time", *(["nodes"] if any(nodes) else []), *names, *ERRORS]
    return Table("On the server; latencies in ms", header, rows, 2)


def _client(phases: Sequence[PhaseSummary]) -> Iterator[Block]:
    """Yield the table of client results, if a phase has a known throughput."""
    rows = [
        [
            shown(phase.name),
            latency_text(phase) if phase.values.get("client_latency") else "-",
            *(number_text(phase.values.get(name), digits) for name, _, digits in CLIENT_COLUMNS),
        ]
        for phase in phases
        if "client_ops_per_s" in phase.values
    ]
    if rows:
        header = ["phase", "latency", *(name for _, name, _ in CLIENT_COLUMNS)]
        yield Table("As measured by the client; latencies in ms", header, rows, 2)
    elif not unknown_rate_texts(phases):
        yield Paragraph("The run has no client results.")


def _costs(phases: Sequence[PhaseSummary], cost: Cost) -> Table:
    rows = []
    for phase in phases:
        rate, source = _rate(phase)
        per_million = cost.per_hour / _SECONDS_PER_HOUR / rate * _MILLION if rate else None
        rows.append([shown(phase.name), source, number_text(rate, 0), number_text(per_million, 4)])
    currency = shown(cost.currency)
    header = ["phase", "measured by", "ops/s", f"{currency} per million operations"]
    return Table(f"Cost at {value_text(cost.per_hour)} {currency} per hour", header, rows, 2)


def _rate(phase: PhaseSummary) -> tuple[float | None, str]:
    """Return the operations per second and where they were measured; None if they are unknown."""
    completed = phase.values.get("client_ops_per_s")
    if isinstance(completed, int | float):
        return completed, "client"
    rate = phase.values.get(TOTAL_RATE)
    return (rate if isinstance(rate, int | float) else None), "server"


def highest_values(data: ReportData) -> Iterator[Block]:
    if data.total is None:
        return
    rows = _rows(PEAKS, data.total.peaks, "", data.zone_s)
    rows += _rows((*CLIENT_PEAKS, PROCESS_CPU), data.total.client_peaks, "client host: ", data.zone_s)
    if rows:
        yield Table("Highest values in the measured phases", ["", "highest", "on", "at"], rows, 1)


def _rows(names: Sequence[str], peaks: Mapping[str, Peak], prefix: str, zone_s: int) -> list[list[str]]:
    rows = []
    for name in names:
        if peak := peaks.get(name):
            label, form = PEAK_LABELS[name]
            process = f" by {shown(peak.process)}" if peak.process else ""
            value = f"{form.format(peak.value)}{process}"
            rows.append([f"{prefix}{label}", value, shown(peak.node), clock_text(peak.time_s, zone_s)])
    return rows


def baseline_comparison(data: ReportData) -> Iterator[Block]:
    if data.baseline is None:
        return
    comparison = data.baseline.comparison
    if comparison is None:
        yield Paragraph("The runs cannot be compared.", is_problem=True)
        return
    # It requires numpy, which is optional.
    from exporters.results.comparison.comparison_output import HEADERS, WITHIN_RUNS, comparison_cells, correction_notes

    # Effects are expressed in terms of the variation between runs, which is unknown if each side is a single run.
    shown_columns = [number for number, name in enumerate(HEADERS) if name != "effect"]
    header = ["column", "baseline", "this run", *(HEADERS[number] for number in shown_columns[3:])]
    yield Paragraph(f"The baseline is {shown(data.baseline.settings.run.name)}; {WITHIN_RUNS}.")
    for warning in comparison.warnings:
        yield Paragraph(shown(warning), is_problem=True)
    for phase, of_phase in groupby(comparison.comparisons, key=lambda compared: compared.phase):
        cells = [comparison_cells(compared) for compared in of_phase]
        rows = [[shown(row[number]) for number in shown_columns] for row in cells]
        yield Table(f"Phase {shown(phase)}", header, rows)
    if notes := correction_notes(comparison.comparisons):
        yield Paragraph(" ".join(notes))


def settings(data: ReportData) -> Iterator[Block]:
    caption = "The cluster and the measurement"
    if data.baseline is None:
        rows = [[name, shown(text)] for name, text in settings_texts(data.settings).items()]
        yield Table(caption, ["setting", "value"], rows, 2)
        return
    pairs = setting_pairs([data.baseline.settings], [data.settings])
    rows = [_setting_row(pair) for pair in pairs if pair.a or pair.b]
    caption += f"; the baseline is {shown(data.baseline.settings.run.name)}"
    yield Table(caption, ["setting", "baseline", "this run", "differs"], rows, 4)


def _setting_row(pair: SettingPair) -> list[str]:
    differs = "unknown" if not pair.is_known else "no" if not pair.is_different else "yes"
    return [
        pair.setting.name,
        shown(pair.a) or "-",
        shown(pair.b) or "-",
        "yes, not comparable" if pair.is_different and pair.setting.is_decisive else differs,
    ]


def nodes_and_clocks(data: ReportData) -> Iterator[Block]:
    yield _node_table(data, "Nodes", data.run.nodes)
    if data.run.client_hosts:
        yield _node_table(data, "Client hosts", data.run.client_hosts, is_host=True)
    if len(data.run.nodes) > 1:
        yield Paragraph(f"The nodes' own clocks: {data.clock}.")
    for result in data.results:
        for text in (f"client result of {result.tool}", *result.notes):
            yield Paragraph(f"{shown(result.source)}: {shown(text)}")


def _node_table(data: ReportData, caption: str, nodes: Sequence[RunNode], *, is_host: bool = False) -> Table:
    header = ["node", "Cassandra", "casstat", "interval", "samples", "lost"]
    header += ["missing intervals", "clock offset", "problem"]
    return Table(caption, header, [_node_row(data, node, is_host=is_host) for node in nodes], 3)


def _node_row(data: ReportData, node: RunNode, *, is_host: bool) -> list[str]:
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


def reproduction(data: ReportData) -> Iterator[Block]:
    run = data.run
    if run.command is not None:
        words = [*_options(run), *(run.options or ()), "--", *run.command.words]
        note = f"{REDACTED} stands for a secret." if any(REDACTED in word for word in words) else ""
        nodes = ""
        if run.options is None:
            # The addresses in a run's metadata may be those of private agents, which end with the run.
            names = list_text([shown(node.name or node.address) for node in run.nodes], len(run.nodes))
            nodes = "NODE... "
            note = (
                f"NODE... stands for the addresses of {names or 'the nodes'}. The version of casstat that recorded the"
                f" run did not store --client, --mark-regex, --redact and the options for access to nodes. {note}"
            )
        yield Command(f"casstat record {nodes}{join(words)}")
        if note:
            yield Paragraph(note.strip())
    yield Paragraph(f"Recorded with casstat {shown(run.casstat)}.")
    phases = [
        [
            shown(phase.name),
            clock_text(phase.begin_s, data.zone_s),
            f"{phase.end_s - phase.begin_s:.1f} s",
            "yes" if phase.measured else "no",
        ]
        for phase in run.phases
    ]
    if phases:
        yield Table("Phases", ["phase", "begin", "time", "in the totals"], phases, 1)
    if run.tags:
        yield Table("Tags", ["tag", "value"], [[shown(key), shown(value)] for key, value in run.tags.items()], 2)


def _options(run: Run) -> list[str]:
    """Return the options of `casstat record` that follow from the run's metadata."""
    options = ["--name", run.name]
    options += [word for key, value in run.tags.items() for word in ("--tag", f"{key}={value}")]
    if run.command is not None and run.command.duration_s is not None:
        options += ["--duration", f"{run.command.duration_s:g}s"]
    if run.warm_up_s:
        options += ["--warm-up", f"{run.warm_up_s:g}s"]
    cool_down_s = sum(phase.end_s - phase.begin_s for phase in run.phases if phase.name == COOL_DOWN)
    # Without a cool-down, a run ends a moment after its command. Earlier versions do not state which it was.
    if run.options is None and round(cool_down_s) >= 1:
        options += ["--cool-down", f"{round(cool_down_s)}s"]
    options += [word for host in run.client_hosts if host.address for word in ("--client-host", host.address)]
    options += [word for condition in run.conditions for word in ("--fail-if", condition.text)]
    return options

"""The sections about the outcome: the verdict, which comes first, and what was saturated first.

The verdict states how the run ended, its throughput and p99, and everything that went wrong.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from shlex import join

from collector.load_results.load_span import outside_notes
from collector.node.metrics.requests import ERRORS, OPERATIONS
from collector.printable import count_text
from collector.runs.cluster_members import member_texts
from collector.runs.run import Run, same_node_text, step_text
from exporters.report.report_blocks import Block, Paragraph, ReportData, Table
from exporters.results.comparison.run_settings import RunSettings, setting_pairs
from exporters.results.saturation.saturation import Finding, Saturation
from exporters.results.summary.phase_summary import (
    PhaseSummary,
    coverage_texts,
    failed,
    is_lower_bound,
    occurring,
    subject_text,
)
from exporters.results.summary.summary_text import no_summary_text, number_text
from exporters.rows.operation_columns import TOTAL_RATE
from exporters.texts import clock_text, list_text, shown, value_text


def first_saturated(data: ReportData) -> Iterator[Block]:
    if data.saturation is None:
        return
    rows = [_row(finding, data.zone_s) for finding in data.saturation.findings]
    shown_names = {finding.resource.name for finding in data.saturation.findings}
    unknown = [resource for resource in data.saturation.unmeasured if resource.name not in shown_names]
    rows += [[resource.name, "unknown", "-", resource.unknown_text or "-"] for resource in unknown]
    yield Table("Resources in the measured phases", ["resource", "state", "on", "measured"], rows, 4)


def saturation_text(saturation: Saturation, zone_s: int) -> str:
    """Return a sentence that names the resource that was saturated first."""
    first = saturation.first
    if first is not None and first.begin_s is not None:
        time = clock_text(first.begin_s, zone_s)
        return f"Limited first by: {first.resource.name} ({shown(first.host)}), from {time}: {_measured(first)}."
    remarks = [resource.unknown_text for resource in saturation.unmeasured if resource.unknown_text]
    if not saturation.is_undetermined:
        return f"Nothing was saturated ({'; '.join(remarks)})." if remarks else "Nothing was saturated."
    unknown = [resource.name for resource in saturation.unmeasured if not resource.unknown_text]
    reasons = [f"not measured on all hosts: {list_text(unknown)}"] if unknown else []
    if saturation.unresponsive:
        reasons.insert(0, f"{shown(saturation.unresponsive)} was busy but did not answer")
    if saturation.has_queue:
        reasons.append(f"{saturation.queued:,.0f} requests were waiting in thread pools")
    reasons += remarks
    return f"What saturated first is undetermined ({'; '.join(reasons)})."


def _row(finding: Finding, zone_s: int) -> list[str]:
    state = "not saturated" if finding.begin_s is None else f"saturated from {clock_text(finding.begin_s, zone_s)}"
    return [finding.resource.name, state, shown(finding.host), _measured(finding)]


def _measured(finding: Finding) -> str:
    """Return the measures of a finding and its hot table as text."""
    table = finding.hot_table
    if table is None:
        return finding.text
    name = shown(f"{table.keyspace}.{table.table}")
    return f"{finding.text}; {table.share:.0%} of the local reads and writes on recorded tables were on {name}"


def verdict(data: ReportData) -> Iterator[Block]:
    yield from _beginning(data)
    if data.saturation is not None:
        yield Paragraph(saturation_text(data.saturation, data.zone_s))
    for problem in _problems(data):
        yield Paragraph(problem, is_problem=True)
    yield from map(Paragraph, _passed_checks(data))


def _beginning(data: ReportData) -> list[Paragraph]:
    """Return how the command ended, and the run's throughput and p99; a failed command has its own paragraph."""
    command, performance = data.run.command, _performance(data)
    if command is None:
        return [Paragraph(f"The run was fetched from past recordings, without a command. {performance}")]
    words = shown(join(command.words))
    if command.exit_code is None:
        return [Paragraph(f"The exit status of the command {words} is unknown. {performance}")]
    if command.exit_code:
        failure = f"The command {words} failed with exit status {command.exit_code}."
        return [Paragraph(failure, is_problem=True), Paragraph(performance)]
    if command.ended_by_duration and command.duration_s is not None:
        return [Paragraph(f"The command {words} was ended after {command.duration_s:g} s. {performance}")]
    return [Paragraph(f"The command {words} ended with exit status 0. {performance}")]


def _performance(data: ReportData) -> str:
    total = data.total
    if total is None:
        reason = no_summary_text(data.run)
        return f"{reason[0].upper()}{reason[1:]}."
    if "client_ops_per_s" in total.values:
        return f"{_client(total)} {_server(total)}"
    return _server(total)


def _client(total: PhaseSummary) -> str:
    p99 = total.values.get("client_p99_ms")
    tail = "an unknown p99" if p99 is None else f"a p99 of {number_text(p99, 2)} ms ({latency_text(total)})"
    return f"Clients completed {number_text(total.values['client_ops_per_s'], 0)} operations/s with {tail}."


def latency_text(summary: PhaseSummary) -> str:
    """Return the kind of the client's latencies, and whether coordinated omission is possible."""
    kind = summary.values.get("client_latency")
    return "service time: coordinated omission possible" if kind == "service" else f"{kind} time"


def _server(total: PhaseSummary) -> str:
    parts = []
    operations = occurring([total.values])
    for operation in operations:
        rate, p99 = (total.values.get(f"{operation.word}{end}") for end in ("s_per_s", "_p99_ms"))
        if isinstance(rate, int | float):
            tail = f" (p99 {number_text(p99, 2)} ms)" if isinstance(p99, int | float) else ""
            parts.append(f"{rate:,.0f} {operation.title}/s{tail}")
    if not parts:
        return "The cluster's throughput is unknown."
    served = f"{subject_text(total.values)} served{' at least' if is_lower_bound(total.values) else ''}"
    rate = total.values.get(TOTAL_RATE)
    if all(operation.is_usual for operation in operations) or not isinstance(rate, int | float):
        return f"{served} {_and(parts)}."
    return f"{served} {rate:,.0f} operations/s: {_and(parts)}."


def _and(parts: Sequence[str]) -> str:
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last


def _problems(data: ReportData) -> Iterator[str]:
    """Yield everything that went wrong or is missing."""
    yield from _failed_conditions(data.run)
    for text in outside_notes(data.results):
        yield f"{shown(text)}."
    if data.baseline is not None:
        yield from _decisive_differences(data.baseline.settings, data.settings)
    if data.total is not None:
        yield from _errors(data.total)
    lost = [f"{count} on {shown(node)}" for node, count in data.lost.items() if count]
    if lost:
        yield f"Samples lost: {list_text(lost)}."
    yield from _missing(data)
    incomplete = [node for node in data.run.nodes if node.folder and node.problem]
    if incomplete:
        yield f"Incomplete recordings: {list_text([shown(node.problem) for node in incomplete])}."
    if data.run.other_runs:
        yield f"Other runs at the same time: {list_text([shown(other) for other in data.run.other_runs])}."


def _missing(data: ReportData) -> Iterator[str]:
    """Yield which nodes and intervals are missing."""
    texts = [*map(same_node_text, data.same), *member_texts(data.run.clusters), *map(step_text, data.run.clock_steps)]
    for text in texts:
        yield f"{shown(text[0].upper() + text[1:])}."
    missing = [shown(node.name or node.address) for node in data.run.nodes if not node.folder]
    if missing:
        yield f"{count_text(len(missing), 'node')} missing: {list_text(missing)}."
    for text in coverage_texts(data.total.incomplete if data.total else (), partial(clock_text, zone_s=data.zone_s)):
        yield f"{shown(text)}."


def _failed_conditions(run: Run) -> Iterator[str]:
    """Yield the conditions of `record --fail-if` that are met, or whose result is unknown."""
    for condition in run.conditions:
        if condition.met:
            yield f"--fail-if '{shown(condition.text)}': {list_text([shown(reason) for reason in condition.reasons])}."
    unknown = [f"'{shown(condition.text)}'" for condition in run.conditions if condition.met is None]
    if unknown:
        yield f"Conditions of --fail-if that were not checked: {list_text(unknown)}."


def _decisive_differences(baseline: RunSettings, settings: RunSettings) -> Iterator[str]:
    """Yield a statement with the differences from the baseline that make the runs not comparable, if there are any."""
    differences = [
        f"the {pair.setting.name} is {shown(pair.b)} instead of {shown(pair.a)}"
        for pair in setting_pairs([baseline], [settings])
        if pair.is_different and pair.setting.is_decisive
    ]
    if differences:
        yield f"Not comparable with the baseline {shown(baseline.run.name)}: {'; '.join(differences)}."


def _errors(total: PhaseSummary) -> Iterator[str]:
    failed = total.values.get("client_errors_per_s")
    if isinstance(failed, int | float) and failed:
        share = total.values.get("client_error_share")
        share_text = f" ({share:.3%} of all operations)" if isinstance(share, float) else ""
        yield f"Clients saw {value_text(failed)} errors/s{share_text}."
    counts = _server_errors(total)
    if any(counts.values()):
        yield f"Errors on the server: {', '.join(f'{count:,.0f} {name}' for name, count in counts.items() if count)}."


def _server_errors(total: PhaseSummary) -> dict[str, float]:
    """Return the known numbers of errors by kind, such as `read timeouts`."""
    values = {
        f"{operation.title.removesuffix('s')} {name}": total.values.get(f"{operation.word}_{name}")
        for operation in OPERATIONS
        for name in ERRORS
    }
    return {name: value for name, value in values.items() if isinstance(value, int | float)}


def _passed_checks(data: ReportData) -> Iterator[str]:
    """Yield the checks that found no problem."""
    passed = [f"'{shown(condition.text)}'" for condition in data.run.conditions if condition.met is False]
    if passed:
        yield f"Conditions of --fail-if that are not met: {list_text(passed)}."
    if data.baseline is not None:
        yield from _equal_settings(data.baseline.settings, data.settings)
    total = data.total
    if total is not None and total.values.get("client_errors_per_s") == 0:
        yield "Clients saw no errors."
    counts = _server_errors(total) if total else {}
    if failed(total.values if total else {}) is not None and not any(counts.values()):
        *first, last = ERRORS
        yield f"No {', '.join(first)} or {last} on the server."
    yield from _passed_recordings(data)


def _passed_recordings(data: ReportData) -> Iterator[str]:
    """Yield that nothing is missing, if that is so."""
    is_complete = total.values.get("node_intervals_missing") == 0 if (total := data.total) else False
    if not is_complete or (total and total.incomplete) or any(data.lost.values()):
        return
    yield "No samples were lost."
    if data.run.nodes and all(node.folder for node in data.run.nodes) and not data.run.nodes_unrecorded:
        # A node that several agents recorded counts once.
        number = len(data.run.nodes) - sum(len(names) - 1 for names in data.same)
        yield f"All {number} nodes were recorded." if number > 1 else "The node was recorded."
        yield f"{'All nodes' if number > 1 else 'The node'} answered in every interval."


def _equal_settings(baseline: RunSettings, settings: RunSettings) -> Iterator[str]:
    """Yield a statement with the decisive settings that equal those of the baseline, unless one of them differs."""
    pairs = [pair for pair in setting_pairs([baseline], [settings]) if pair.setting.is_decisive and pair.is_known]
    if not any(pair.is_different for pair in pairs):
        names = ", ".join(pair.setting.name for pair in pairs)
        yield f"The same as in the baseline {shown(baseline.run.name)}: {names}."

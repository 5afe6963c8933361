"""The first section: how the run ended, its throughput and p99, and everything that went wrong."""

from collections.abc import Iterator
from shlex import join

from collector.printable import count_text
from exporters.report.report_blocks import Paragraph, Section
from exporters.report.report_data import ReportData
from exporters.report.report_texts import list_text, shown, value_text
from exporters.summary.phase_summary import ERRORS, PhaseSummary
from exporters.summary.summary_text import number_text

_WORDS = ("read", "write")


def verdict(data: ReportData) -> Section:
    problems = [Paragraph(text, is_problem=True) for text in _problems(data)]
    passed = [Paragraph(text) for text in _passed_checks(data)]
    return Section("Verdict", [Paragraph(f"{_ending(data)} {_performance(data)}"), *problems, *passed])


def _ending(data: ReportData) -> str:
    command = data.run.command
    if command is None:
        return "The run was fetched from past recordings, without a command."
    words = shown(join(command.words))
    if command.exit_code is None:
        return f"The exit status of the command {words} is unknown."
    return f"The command {words} ended with exit status {command.exit_code}."


def _performance(data: ReportData) -> str:
    total = data.total
    if total is None:
        return "No phase is long enough to contain a complete interval."
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
    for word in _WORDS:
        rate, p99 = total.values.get(f"{word}s_per_s"), total.values.get(f"{word}_p99_ms")
        if isinstance(rate, int | float):
            tail = f" (p99 {number_text(p99, 2)} ms)" if isinstance(p99, int | float) else ""
            parts.append(f"{rate:,.0f} {word}s/s{tail}")
    return f"The cluster served {' and '.join(parts)}." if parts else "The cluster's throughput is unknown."


def _problems(data: ReportData) -> Iterator[str]:
    """Yield everything that went wrong or is missing."""
    command = data.run.command
    if command is not None and command.exit_code:
        yield f"The command failed with exit status {command.exit_code}."
    if data.total is not None:
        yield from _errors(data.total)
    lost = [f"{count} on {shown(node)}" for node, count in data.lost.items() if count]
    if lost:
        yield f"Samples lost: {list_text(lost)}."
    missing = [shown(node.name or node.address) for node in data.run.nodes if not node.folder]
    if missing:
        yield f"{count_text(len(missing), 'node')} missing: {list_text(missing)}."
    incomplete = [node for node in data.run.nodes if node.folder and node.problem]
    if incomplete:
        yield f"Incomplete recordings: {list_text([shown(node.problem) for node in incomplete])}."
    if data.run.other_runs:
        yield f"Other runs at the same time: {list_text([shown(other) for other in data.run.other_runs])}."


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
    values = {f"{word} {name}": total.values.get(f"{word}_{name}") for word in _WORDS for name in ERRORS}
    return {name: value for name, value in values.items() if isinstance(value, int | float)}


def _passed_checks(data: ReportData) -> Iterator[str]:
    """Yield the checks that found no problem."""
    total = data.total
    if total is not None and total.values.get("client_errors_per_s") == 0:
        yield "Clients saw no errors."
    counts = _server_errors(total) if total else {}
    if len(counts) == len(_WORDS) * len(ERRORS) and not any(counts.values()):
        *first, last = ERRORS
        yield f"No {', '.join(first)} or {last} on the server."
    if data.lost and not any(data.lost.values()):
        yield "No samples were lost."
    if data.run.nodes and all(node.folder for node in data.run.nodes):
        yield f"All {number} nodes were recorded." if (number := len(data.run.nodes)) > 1 else "The node was recorded."

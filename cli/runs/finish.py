"""Completes a recorded run: writes merged tables, plots and the summary, and checks the conditions of --fail-if."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TypeVar

import click

from cli.errors import CasstatError, note
from cli.parameters.read_limit_options import memory_limit
from cli.recordings.merge_options import MergeSettings
from cli.recordings.merge_program import merge_into
from cli.recordings.plot_program import POINTS, Drawing, plot_into
from cli.runs.client_results import results_in
from cli.runs.clients.client_host_summary import with_client_peaks
from cli.runs.run_summary import RunSummary, summary_of
from cli.safe_echo import echo
from collector.atomic_file import replace_file
from collector.journal.read_limits import MAX_MEMORY_BYTES
from collector.printable import count_text, one_line, printable_json
from collector.runs.run import Run
from exporters.summary.client_values import with_client_values
from exporters.summary.conditions import Condition
from exporters.summary.phase_summary import PhaseSummary
from exporters.summary.summary_text import summary_lines

Result = TypeVar("Result")
MERGED_FOLDER, PLOTS_FOLDER, SUMMARY_FILE = "merged", "plots", "summary.json"


def finish(folder: Path, run: Run, conditions: Sequence[Condition], *, quiet: bool) -> bool:
    """Write the tables, plots and summary of a run to its directory, and print the summary.

    Returns whether any condition is met or cannot be checked. If a step fails, prints its error and goes on with the
    next one. Raises CasstatError if no node was recorded.
    """
    if not any(node.folder for node in run.nodes):
        raise CasstatError(f"{folder}: no node was recorded")
    summary = _summarised(folder, run)
    if summary is not None:
        _attempt(lambda: _write_summary(folder, summary.phases))
    _attempt(lambda: merge_into(MergeSettings((folder,)), folder / MERGED_FOLDER, quiet=True))
    settings = MergeSettings((folder,), points=POINTS)
    _attempt(lambda: list(plot_into(settings, folder / PLOTS_FOLDER, Drawing(), quiet=True)))
    if not quiet:
        _print_summary(run, summary)
    met = _check(conditions, summary.phases if summary else [])
    echo(folder, err=True)
    return met


def summarise(folder: Path, run: Run) -> None:
    """Write the summary of a run to its directory, and print it; if that fails, print the error."""
    summary = _summarised(folder, run)
    if summary is not None:
        _attempt(lambda: _write_summary(folder, summary.phases))
        _print_summary(run, summary)


def _summarised(folder: Path, run: Run) -> RunSummary | None:
    """Return the run's summary, or None if it fails.

    If only the values of client hosts or client results fail, they are left out.
    """
    summary = _attempt(lambda: summary_of(folder, run))
    if summary is None:
        return None
    phases = _attempt(lambda: with_client_peaks(folder, run, summary.phases)) or summary.phases
    phases = _attempt(lambda: with_client_values(phases, results_in(folder))) or phases
    return replace(summary, phases=phases)


def _attempt(step: Callable[[], Result]) -> Result | None:
    """Return the result of a step; if it fails or needs too much memory, print the error and return None."""
    try:
        with memory_limit(MAX_MEMORY_BYTES):
            return step()
    except (CasstatError, click.ClickException) as error:
        note(error.format_message() if isinstance(error, click.ClickException) else str(error))
        return None


def _write_summary(folder: Path, summaries: Sequence[PhaseSummary]) -> None:
    text = json.dumps([asdict(summary) for summary in summaries], indent=1, allow_nan=False)
    lines = (printable_json(line) + "\n" for line in text.split("\n"))
    try:
        replace_file(folder / SUMMARY_FILE, "".join(lines).encode())
    except OSError as error:
        raise CasstatError(f"{error.filename or folder}: {error.strerror}") from None


def _print_summary(run: Run, summary: RunSummary | None) -> None:
    """Print the summary, if there is one, on which nodes ticks were lost, and which nodes are missing."""
    for line in summary_lines(summary.phases) if summary else ():
        echo(line, err=True)
    lost = [f"{count} on {one_line(node)}" for node, count in summary.lost.items() if count] if summary else []
    if lost:
        echo(one_line(f"lost ticks: {', '.join(lost)}"), err=True)
    missing = [node for node in run.nodes if not node.folder]
    if missing:
        names = ", ".join(one_line(node.name or node.address) for node in missing)
        echo(f"{count_text(len(missing), 'node')} missing: {one_line(names)}", err=True)


def _check(conditions: Sequence[Condition], summaries: Sequence[PhaseSummary]) -> bool:
    """Print each condition that holds in a phase or cannot be checked; return whether there are any."""
    met = False
    for condition in conditions:
        values = [(summary.name, summary.values.get(condition.column)) for summary in summaries]
        if not any(isinstance(value, int | float) for _, value in values):
            note(f"--fail-if '{condition.text}': the run has no value for {condition.column}")
            met = True
        for summary in summaries:
            if condition.holds(summary.values):
                value = summary.values[condition.column]
                note(f"--fail-if '{condition.text}': {condition.column} is {value} in phase '{one_line(summary.name)}'")
                met = True
    return met

"""The summary of a completed run: its nodes, its client hosts and its client results."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import click

from cli.errors import CasstatError, note
from cli.parameters.recording_options import memory_limit
from cli.recordings.run_defaults import results_in
from cli.runs.clients.client_host_summary import with_client_peaks
from cli.runs.run_summary import RunSummary, summary_of
from collector.recording.header import MAX_MEMORY_BYTES
from collector.runs.run import Run, RunCondition
from exporters.results.summary.client_values import with_client_values
from exporters.results.summary.conditions import condition_of
from exporters.results.summary.phase_summary import PhaseSummary, with_error_share

Result = TypeVar("Result")


def attempt(step: Callable[[], Result]) -> Result | None:
    """Return the result of a step; if it fails or needs too much memory, print the error and return None."""
    try:
        with memory_limit(MAX_MEMORY_BYTES):
            return step()
    except (CasstatError, click.ClickException) as error:
        note(error.format_message() if isinstance(error, click.ClickException) else str(error))
        return None


def completed_summary(folder: Path, run: Run) -> RunSummary | None:
    """Return the run's summary, or None if it cannot be computed.

    Values of client hosts and client results that cannot be read are left out.
    """
    summary = attempt(lambda: summary_of(folder, run))
    if summary is None:
        return None
    phases = attempt(lambda: with_client_peaks(folder, run, summary.phases)) or summary.phases
    phases = attempt(lambda: with_client_values(phases, results_in(folder))) or phases
    return replace(summary, phases=with_error_share(phases))


def with_checked_conditions(run: Run, summary: RunSummary | None) -> Run:
    """Return the run with the results of its conditions; a condition that this version cannot parse is unchanged."""
    summaries = summary.phases if summary else []
    return replace(run, conditions=tuple(_checked(condition, summaries) for condition in run.conditions))


def _checked(condition: RunCondition, summaries: Sequence[PhaseSummary]) -> RunCondition:
    try:
        reasons = tuple(condition_of(condition.text).failures(summaries))
    except ValueError:
        return condition
    return replace(condition, met=bool(reasons), reasons=reasons)

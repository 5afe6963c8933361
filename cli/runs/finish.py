"""Completes a recorded run: writes tables, plots, summary and report, and checks the conditions of --fail-if."""

import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from cli.errors import CasstatError, echo, note
from cli.recordings.merge_options import MergeSettings
from cli.recordings.merge_program import merge_into
from cli.recordings.plot_program import POINTS, Drawing, plot_into
from cli.runs.command.signal_handlers import handling
from cli.runs.completed_summary import attempt, completed_summary, with_checked_conditions
from cli.runs.report_program import HTML_FILE, write_report
from cli.runs.run_summary import RunSummary
from cli.runs.summary_file import write_summaries
from collector.printable import count_text, one_line
from collector.runs.cluster_members import member_texts
from collector.runs.run import Run
from collector.runs.run_file import write_run
from collector.runs.run_texts import same_node_text
from exporters.results.summary.phase_summary import PhaseSummary
from exporters.results.summary.summary_text import no_summary_text, summary_lines

MERGED_FOLDER, PLOTS_FOLDER = "merged", "plots"


@contextmanager
def completing(folder: Path) -> Iterator[None]:
    """In the block, which completes a run, SIGTERM and SIGHUP act like Ctrl-C, and print how to complete the run."""
    try:
        with handling({signal.SIGTERM: _interrupt, signal.SIGHUP: _interrupt}):
            yield
    except KeyboardInterrupt:
        note(f"{folder}: tables, plots and report are incomplete (hint: run 'casstat fetch --recover {folder}')")
        raise


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def finish(folder: Path, run: Run, *, quiet: bool, has_report: bool = True) -> bool:
    """Write the tables, plots, summary and, unless `has_report` is false, the report of a run; print the summary.

    Checks the run's conditions, writes the results to its file, and returns whether any condition is met or cannot be
    checked. If a step fails, prints its error and goes on with the next one. Raises CasstatError if no node was
    recorded.
    """
    if not any(node.folder for node in run.nodes):
        raise CasstatError(f"{folder}: no node was recorded")
    summary = completed_summary(folder, run)
    if summary is not None:
        attempt(lambda: _write_summary(folder, summary.phases))
    if run.conditions:
        run = with_checked_conditions(run, summary)
        attempt(lambda: _write_run(folder, run))
    attempt(lambda: merge_into(MergeSettings((folder,)), folder / MERGED_FOLDER, quiet=True))
    settings = MergeSettings((folder,), points=POINTS)
    attempt(lambda: list(plot_into(settings, folder / PLOTS_FOLDER, Drawing(), quiet=True)))
    if summary is not None and has_report:
        attempt(lambda: write_report(folder, run, summary, folder))
    if not quiet:
        _print_summary(run, summary)
    _print_conditions(run)
    echo(folder, err=True)
    return any(condition.met for condition in run.conditions)


def summarise(folder: Path, run: Run) -> None:
    """Write the summary of a run to its directory, and print it; if the run has a report, update it.

    Checks the run's conditions again. If a step fails, prints its error.
    """
    summary = completed_summary(folder, run)
    if summary is not None:
        attempt(lambda: _write_summary(folder, summary.phases))
        if run.conditions:
            run = with_checked_conditions(run, summary)
            attempt(lambda: _write_run(folder, run))
        _print_summary(run, summary)
        _print_conditions(run)
        if (folder / HTML_FILE).exists():
            attempt(lambda: write_report(folder, run, summary, folder))


def _write_summary(folder: Path, summaries: Sequence[PhaseSummary]) -> None:
    try:
        write_summaries(folder, summaries)
    except OSError as error:
        raise CasstatError(f"{error.filename or folder}: {error.strerror}") from None


def _write_run(folder: Path, run: Run) -> None:
    try:
        write_run(folder, run)
    except OSError as error:
        raise CasstatError(f"{error.filename or folder}: {error.strerror}") from None


def _print_summary(run: Run, summary: RunSummary | None) -> None:
    """Print the summary, if there is one, on which nodes ticks were lost, and which nodes are missing."""
    if summary is not None:
        for line in summary_lines(summary.phases) if summary.phases else [no_summary_text(run)]:
            echo(line, err=True)
    lost = [f"{count} on {one_line(node)}" for node, count in summary.lost.items() if count] if summary else []
    if lost:
        echo(one_line(f"lost ticks: {', '.join(lost)}"), err=True)
    for text in (*map(same_node_text, summary.same if summary else ()), *member_texts(run.clusters)):
        echo(text, err=True)
    missing = [node for node in run.nodes if not node.folder]
    if missing:
        names = ", ".join(one_line(node.name or node.address) for node in missing)
        echo(f"{count_text(len(missing), 'node')} missing: {one_line(names)}", err=True)


def _print_conditions(run: Run) -> None:
    """Print each condition that is met in a phase or cannot be checked."""
    for condition in run.conditions:
        for reason in condition.reasons:
            note(f"--fail-if '{one_line(condition.text)}': {one_line(reason)}")

"""Completes a recorded run: writes tables, plots, summary and report, and checks the conditions of --fail-if."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from cli.errors import ANALYSIS, CasstatError, echo, has_packages, install_command, note, require_packages
from cli.parameters.recording_options import output_folder
from cli.process_setup import interruptible
from cli.recordings.merge_program import tables
from cli.recordings.plot_program import POINTS, plots
from cli.recordings.recording_arguments import MergeSettings, results_in, run_in
from cli.recordings.views import Step, View, begun
from cli.run_folder import recovery_hint, require_not_recorded
from cli.runs.compare_program import comparison_of
from cli.runs.run_saturation import saturation_of
from cli.runs.run_summary import (
    RunSummary,
    attempt,
    completed_summary,
    run_settings,
    with_checked_conditions,
    write_summaries,
)
from cli.runs.run_views import RunViews, run_views
from collector.file_access import file_errors, replace_file
from collector.merge.node_settings import NEEDS
from collector.printable import count_text, one_line
from collector.runs.cluster_members import member_texts
from collector.runs.run import Run, same_node_text
from collector.runs.run_file import write_run
from exporters.report.report_blocks import Baseline, Cost
from exporters.results.saturation.saturation import Saturation
from exporters.results.summary.summary_text import no_summary_text, summary_lines

if TYPE_CHECKING:
    from exporters.charts.merged_plot_data import NodeRows

Content = TypeVar("Content")
MERGED_FOLDER, PLOTS_FOLDER = "merged", "plots"
HTML_FILE, MARKDOWN_FILE = "report.html", "report.md"
# A run of up to 11 minutes has a point per second; the points of longer runs cover longer intervals.
REPORT_POINTS = 660


@contextmanager
def completing(folder: Path) -> Iterator[None]:
    """In the block, which completes a run, SIGTERM and SIGHUP act like Ctrl-C, and print how to complete the run."""
    try:
        with interruptible():
            yield
    except KeyboardInterrupt:
        note(f"{folder}: tables, plots and report are incomplete {recovery_hint(folder)}")
        raise


def finish(folder: Path, run: Run, *, quiet: bool, has_report: bool = True) -> bool:
    """Write the tables, plots, summary and, unless `has_report` is false, the report of a run; print the summary.

    Checks the run's conditions, writes the results to its file, and returns whether any condition is met or cannot be
    checked. If a step fails, prints its error and goes on with the next one. Raises CasstatError if no node was
    recorded.
    """
    if not any(node.folder for node in run.nodes):
        raise CasstatError(f"{folder}: no node was recorded")
    if not has_packages(*ANALYSIS):
        hint = f"run '{install_command(*ANALYSIS)}', then 'casstat fetch --recover {folder}'"
        note(f"{folder}: tables, plots, summary and report require {' and '.join(ANALYSIS)} (hint: {hint})")
        return _concluded(folder, with_checked_conditions(run, None) if run.conditions else run)
    views = run_views(folder, run)
    # The recordings are read once for all steps, when the first one is completed.
    complete_summary = begun(completed_summary(views))
    write_tables = begun(tables(views.nodes, MergeSettings((folder,)), folder / MERGED_FOLDER))
    begin_plots = begun(plots(views.nodes, MergeSettings((folder,), points=POINTS), folder / PLOTS_FOLDER))
    complete_report = begun_report(views) if has_report else None
    summary = attempt(complete_summary)
    run = _written(folder, run, summary)
    # gnuplot draws while the report is written.
    wait_for_plots = attempt(begin_plots)
    attempt(write_tables)
    if summary is not None and complete_report is not None:
        attempt(partial(complete_report, run, summary, folder))
    if wait_for_plots is not None:
        attempt(wait_for_plots)
    if not quiet:
        _print_summary(run, summary)
    return _concluded(folder, run)


def _concluded(folder: Path, run: Run) -> bool:
    _print_conditions(run)
    echo(folder, err=True)
    return any(condition.met for condition in run.conditions)


def summarise(folder: Path, run: Run) -> None:
    """Write the summary of a run to its directory, and print it; if the run has a report, update it.

    Checks the run's conditions again. If a step fails, prints its error.
    """
    views = run_views(folder, run)
    complete_summary = begun(completed_summary(views))
    complete_report = begun_report(views) if (folder / HTML_FILE).exists() else None
    summary = attempt(complete_summary)
    if summary is not None:
        run = _written(folder, run, summary)
        _print_summary(run, summary)
        _print_conditions(run)
        if complete_report is not None:
            attempt(partial(complete_report, run, summary, folder))


def _written(folder: Path, run: Run, summary: RunSummary | None) -> Run:
    """Write the summary, if there is one, and the run with the results of its conditions; return the run.

    If a step fails, prints its error.
    """
    if summary is not None:
        attempt(partial(_write, write_summaries, folder, summary.phases))
    if run.conditions:
        run = with_checked_conditions(run, summary)
        attempt(partial(_write, write_run, folder, run))
    return run


def _write(write: Callable[[Path, Content], None], folder: Path, content: Content) -> None:
    with file_errors(folder, CasstatError):
        write(folder, content)


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


def report(folder: Path, target: Path, cost: Cost | None, baseline_folder: Path | None) -> list[Path]:
    """Write the report of the run in `folder` to the directory `target`, with another run as its baseline, if given.

    Returns the files. Raises CasstatError and click.UsageError.
    """
    for existing in filter(None, (folder, baseline_folder)):
        run_in(existing)
    require_not_recorded(folder)
    require_packages("report", *ANALYSIS)
    views = run_views(folder)
    complete_summary = begun(completed_summary(views))
    complete_report = begun_report(views)
    complete_baseline = None if baseline_folder is None else begun(_baseline(baseline_folder, views))
    summary = attempt(complete_summary)
    if summary is None:
        raise CasstatError(f"{folder}: cannot write a report without a summary")
    baseline = None if complete_baseline is None else complete_baseline()
    # Client results may have been imported since the conditions were checked.
    run = with_checked_conditions(views.run, summary)
    return complete_report(run, summary, target, cost, baseline)


def _baseline(folder: Path, views: RunViews) -> Step[Baseline]:
    """Return the run in `folder` as the baseline of another; print a note if they cannot be compared.

    Raises CasstatError and click.UsageError.
    """
    baseline = run_views(folder)
    complete_settings, compare = begun(run_settings(baseline)), begun(comparison_of([baseline], [views]))
    yield
    return Baseline(complete_settings(), attempt(compare))


def begun_report(views: RunViews) -> Callable[..., list[Path]]:
    """Add the views of a report; return `write_report` without its first three parameters."""
    from exporters.charts.merged_plot_data import node_rows

    rows = View(views.nodes, node_rows, NEEDS, points=REPORT_POINTS, may_be_empty=True)
    return partial(write_report, views.folder, rows, begun(saturation_of(views)))


def write_report(
    folder: Path,
    rows: View["NodeRows"],
    complete_saturation: Callable[[], Saturation | None],
    run: Run,
    summary: RunSummary,
    target: Path,
    cost: Cost | None = None,
    baseline: Baseline | None = None,
) -> list[Path]:
    """Write the report of the run in `folder` to the directory `target`; return the files.

    Raises CasstatError and click.UsageError.
    """
    from exporters.charts.merged_plot_data import clocks
    from exporters.report.report import html_report, markdown_report, report_of
    from exporters.report.report_blocks import ReportData, merged_run
    from exporters.results.comparison.run_settings import RunSettings

    result, operations = rows.merged()
    settings = RunSettings(run, {node.node: node.product.settings for node in result.nodes})
    saturation = attempt(complete_saturation)
    results = results_in(folder)
    data = ReportData(
        settings,
        merged_run(run, result, operations),
        clocks([node.head for node in result.nodes]),
        summary.phases,
        summary.lost,
        results,
        cost,
        baseline,
        saturation,
        summary.gaps,
        summary.same,
    )
    content = report_of(data)
    texts = {HTML_FILE: html_report(content), MARKDOWN_FILE: markdown_report(content)}
    with output_folder(target):
        for name, text in texts.items():
            replace_file(target / name, text.encode(errors="replace"))
    return [target / name for name in texts]

"""Writes the report of a run, for `casstat report`, `casstat record` and `casstat import`."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cli.errors import CasstatError
from cli.install_hint import require_packages
from cli.parameters.recording_options import output_folder
from cli.recordings.merge_options import MergeSettings
from cli.recordings.merge_program import merged
from cli.recordings.run_defaults import read_run_in, results_in, run_at
from cli.recordings.settings_of_run import run_settings
from cli.run_folder import is_being_recorded
from cli.runs.compare_program import comparison_of
from cli.runs.completed_summary import attempt, completed_summary, with_checked_conditions
from cli.runs.run_saturation import saturation_of
from cli.runs.run_summary import RunSummary
from collector.file_access import replace_file
from collector.runs.run import Run
from exporters.report.report_data import Baseline, Cost

if TYPE_CHECKING:
    from exporters.results.comparison.comparison import Report as Comparison

HTML_FILE, MARKDOWN_FILE = "report.html", "report.md"
# A run of up to 11 minutes has a point per second; the points of longer runs cover longer intervals.
POINTS = 660


@dataclass(frozen=True)
class ReportSettings:
    """The options of `casstat report`; see `casstat report --help`."""

    run: Path
    folder: Path | None = None
    cost_per_hour: float | None = None
    currency: str = "USD"
    baseline: Path | None = None


def report(settings: ReportSettings) -> list[Path]:
    """Write the report of the run in a directory; return the files. Raises CasstatError and click.UsageError."""
    for folder in filter(None, (settings.run, settings.baseline)):
        if run_at([folder]) is None:
            raise CasstatError(f"{folder}: not a run directory")
    if is_being_recorded(settings.run):
        raise CasstatError(f"{settings.run}: the run is being recorded (hint: wait until it ends)")
    run = read_run_in(settings.run)
    summary = completed_summary(settings.run, run)
    if summary is None:
        raise CasstatError(f"{settings.run}: cannot write a report without a summary")
    cost = None if settings.cost_per_hour is None else Cost(settings.cost_per_hour, settings.currency)
    baseline = None if settings.baseline is None else _baseline(settings.baseline, settings.run)
    # Client results may have been imported since the conditions were checked.
    run = with_checked_conditions(run, summary)
    return write_report(settings.run, run, summary, settings.folder or settings.run, cost, baseline)


def _baseline(baseline: Path, folder: Path) -> Baseline:
    """Return the baseline of the run in `folder`; print a note if they cannot be compared.

    Raises CasstatError and click.UsageError.
    """
    return Baseline(run_settings(baseline), attempt(lambda: _comparison(baseline, folder)))


def _comparison(baseline: Path, folder: Path) -> "Comparison":
    """Return the comparison of two runs. Raises CasstatError and click.UsageError."""
    require_packages("a comparison with the baseline", "numpy", also=["orjson"])
    return comparison_of([baseline], [folder])


def write_report(
    folder: Path,
    run: Run,
    summary: RunSummary,
    target: Path,
    cost: Cost | None = None,
    baseline: Baseline | None = None,
) -> list[Path]:
    """Write the report of the run in `folder` to the directory `target`; return the files.

    Raises CasstatError and click.UsageError.
    """
    from collector.merge.node_settings import NEEDS
    from exporters.charts.merged_run import node_rows
    from exporters.report.html_report import html_report
    from exporters.report.markdown_report import markdown_report
    from exporters.report.report_content import report_of
    from exporters.report.report_data import report_data
    from exporters.results.comparison.run_settings import RunSettings

    result, choice = merged(MergeSettings((folder,), points=POINTS), node_rows, NEEDS, quiet=True, may_be_empty=True)
    settings = RunSettings(run, {node.node: node.product.settings for node in result.nodes})
    saturation = attempt(lambda: saturation_of(folder, run))
    results = results_in(folder)
    data = report_data(
        settings,
        result,
        choice,
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

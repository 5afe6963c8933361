"""Compares two groups of runs, for `casstat compare`."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.errors import ANALYSIS, CasstatError, echo, note, require_packages
from cli.recordings.recording_arguments import read_run_in
from cli.recordings.views import Step, begun, completed
from cli.run_folder import RUNS_FOLDER, recovery_hint
from cli.runs.run_summary import measured_phases, read_summaries
from cli.runs.run_views import RunViews, run_views
from collector.file_access import replace_file
from collector.garbage_collection import gc_paused
from collector.printable import one_line
from collector.runs.cluster_members import member_texts
from collector.runs.run import Run, RunPhase
from collector.runs.run_file import RunFileError, is_run, read_run
from exporters.results.summary.conditions import RelativeCondition
from exporters.results.summary.phase_summary import coverage_texts, time_of_day

if TYPE_CHECKING:
    from exporters.results.comparison.comparison import ComparedRun, Report
    from exporters.results.comparison.run_settings import RunSettings

MAX_INTERVALS = 1000
"""Longer phases are divided into fewer, longer intervals, which hardly changes the result."""
DEFAULT_INTERVAL_S = 1.0
_TAG = "tag:"


@dataclass(frozen=True)
class CompareSettings:
    """The runs to compare (directories, names or, for A only, a tag), the conditions, and the output."""

    a: tuple[str, ...]
    b: tuple[str, ...]
    baseline: str | None = None
    fail_if: tuple[RelativeCondition, ...] = ()
    json: bool = False
    junit: Path | None = None


def compare(settings: CompareSettings) -> int:
    """Print the comparison and return the exit status, which is 1 if a condition is met or cannot be checked.

    Raises CasstatError and click.UsageError.
    """
    require_packages("compare", *ANALYSIS)
    from exporters.results.comparison.comparison_output import comparison_json, comparison_lines, junit_xml

    a, b = ([run_views(folder) for folder in side] for side in _sides(settings))
    report = completed(comparison_of(a, b, settings.fail_if))
    for warning in report.warnings:
        note(warning)
    for line in [comparison_json(report)] if settings.json else comparison_lines(report):
        echo(line)
    for checked in report.conditions:
        for failure in checked.failures:
            note(f"--fail-if '{checked.condition.text}': {failure}")
    if settings.junit is not None:
        try:
            replace_file(settings.junit, junit_xml(report))
        except OSError as error:
            raise CasstatError(f"{settings.junit}: {error.strerror}") from None
    return int(report.is_failed)


def _sides(settings: CompareSettings) -> tuple[list[Path], list[Path]]:
    """Return the directories of both sides' runs. Raises CasstatError and click.UsageError."""
    if bool(settings.a) == (settings.baseline is not None):
        raise click.UsageError("specify either runs A or --baseline")
    if not settings.b:
        raise click.UsageError("no runs to compare with (hint: use 'casstat compare A... --with B...')")
    a = [_folder(text) for text in settings.a] if settings.baseline is None else _tagged(settings.baseline)
    b = [_folder(text) for text in settings.b]
    known: dict[tuple[str, float], Path] = {}
    for folder in (*a, *b):
        run = read_run_in(folder)
        # A copy of a run has the same name and beginning.
        other = known.setdefault((run.name, run.begin_s), folder)
        if other is not folder:
            raise click.UsageError(f"{folder} is the same run as {other}")
    return a, b


def _folder(text: str) -> Path:
    """Return the directory of a run, given by its path or name. Raises CasstatError."""
    path = Path(text)
    if is_run(path):
        return path
    named = [folder for folder, run in _runs() if text in (run.name, folder.name)]
    if len(named) > 1:
        raise CasstatError(f"'{one_line(text)}' is the name of {len(named)} runs (hint: specify their directories)")
    if not named:
        raise CasstatError(f"{one_line(text)}: no such run (hint: 'casstat runs' lists runs)")
    return named[0]


def _tagged(baseline: str) -> list[Path]:
    """Return the directories of the runs with the tag in `tag:KEY=VALUE`. Raises CasstatError and click.UsageError."""
    key, equals, value = baseline.removeprefix(_TAG).partition("=")
    if not baseline.startswith(_TAG) or not key or not equals:
        raise click.BadParameter(f"'{baseline}': expected tag:KEY=VALUE", param_hint="--baseline")
    folders = [folder for folder, run in _runs() if run.tags.get(key) == value]
    if not folders:
        raise CasstatError(f"no run in {RUNS_FOLDER} has the tag {one_line(key)}={one_line(value)}")
    return folders


def _runs() -> Iterator[tuple[Path, Run]]:
    """Yield the runs in the default directory; print a note for those that cannot be read."""
    try:
        folders = sorted(filter(is_run, RUNS_FOLDER.iterdir()))
    except OSError:
        return
    for folder in folders:
        try:
            yield folder, read_run(folder)
        except (OSError, RunFileError) as error:
            note(f"{folder}: {one_line(error)}")


def comparison_of(
    a: Sequence[RunViews], b: Sequence[RunViews], conditions: Sequence[RelativeCondition] = ()
) -> "Step[Report]":
    """Return the comparison of runs, which requires numpy. Raises CasstatError and click.UsageError."""
    from exporters.results.comparison.comparison import Report, checked, comparisons
    from exporters.results.comparison.run_settings import differing_settings

    runs = [*a, *b]
    for folder in (views.folder for views in runs if views.run.end_s is None):
        raise CasstatError(f"{folder}: the run has not ended {recovery_hint(folder)}")
    phases = [measured_phases(views.run) for views in runs]
    common = set.intersection(*({phase.name for phase in of_run} for of_run in phases))
    if not common:
        raise CasstatError("the runs have no phase in common (hint: see 'casstat runs show DIR')")
    step_s = _step_s(runs, phases)
    sides = [[begun(_compared(views, common, step_s, is_only=len(side) == 1)) for views in side] for side in (a, b)]
    yield
    # Client results have millions of objects.
    with gc_paused():
        pairs_a, pairs_b = ([complete() for complete in side] for side in sides)
    side_a, side_b = ([run for run, _ in pairs] for pairs in (pairs_a, pairs_b))
    compared = comparisons(side_a, side_b, [condition.column for condition in conditions])
    return Report(
        [run.name for run in side_a],
        [run.name for run in side_b],
        [
            *differing_settings(*([run_settings for _, run_settings in pairs] for pairs in (pairs_a, pairs_b))),
            *_missing_phases(runs, phases, common),
            *_missing_data((*side_a, *side_b), common),
            *_missing_nodes(runs, common),
            *_omitted_intervals((*side_a, *side_b)),
        ],
        compared,
        [checked(condition, compared) for condition in conditions],
    )


def _step_s(runs: Iterable[RunViews], phases: Iterable[Sequence[RunPhase]]) -> float:
    """Return the length of the intervals into which phases are divided."""
    intervals_s = [node.interval_s or DEFAULT_INTERVAL_S for views in runs for node in views.run.nodes]
    longest_s = max(phase.end_s - phase.begin_s for of_run in phases for phase in of_run)
    shortest_s = max(intervals_s, default=DEFAULT_INTERVAL_S)
    return shortest_s * ceil(max(longest_s / MAX_INTERVALS / shortest_s, 1.0))


def _missing_phases(runs: Sequence[RunViews], phases: Sequence[Sequence[RunPhase]], common: set[str]) -> Iterator[str]:
    """Yield a warning for each phase that some runs do not have."""
    names = [[phase.name for phase in of_run] for of_run in phases]
    for name in dict.fromkeys(name for of_run in names for name in of_run if name not in common):
        without = [views.name for views, of_run in zip(runs, names, strict=True) if name not in of_run]
        yield one_line(f"phase '{one_line(name)}' is not compared: it is not in {', '.join(without)}")


def _missing_data(runs: Iterable["ComparedRun"], common: set[str]) -> Iterator[str]:
    """Yield a warning for each run without client results if others have them."""
    has_client = {run.name: any(run.phases[phase].bins("") for phase in common) for run in runs}
    if any(has_client.values()):
        for name in (name for name, has_results in has_client.items() if not has_results):
            yield one_line(f"client results are not compared: {name} has none")


def _missing_nodes(runs: Sequence[RunViews], common: set[str]) -> Iterator[str]:
    """Yield a warning for each run whose nodes lack intervals of the compared phases, or that lacks nodes."""
    for views in runs:
        texts = member_texts(views.run.clusters)
        for summary in read_summaries(views.folder):
            if summary.name in common:
                texts += [
                    f"{one_line(summary.name)}: {text}" for text in coverage_texts(summary.incomplete, time_of_day)
                ]
        for text in texts:
            yield one_line(f"{views.name}: {text}")


def _omitted_intervals(runs: "Iterable[ComparedRun]") -> Iterator[str]:
    """Yield a warning for each phase in which some intervals or nodes are not compared."""
    for run in runs:
        for phase, data in run.phases.items():
            if data.note:
                yield one_line(f"{run.name}: {one_line(phase)}: {data.note}")


def _compared(
    views: RunViews, common: set[str], step_s: float, *, is_only: bool
) -> "Step[tuple[ComparedRun, RunSettings]]":
    """Return the data of a run's phases, and the run's settings. Raises CasstatError and click.UsageError.

    `is_only` states whether the run is the only one of its side: stated percentiles of several runs are not comparable.
    """
    from cli.runs.run_saturation import phase_data
    from exporters.results.comparison.comparison import ComparedRun
    from exporters.results.comparison.run_settings import RunSettings

    phases = [phase for phase in measured_phases(views.run) if phase.name in common]
    data, settings = yield from phase_data(views.nodes, views.folder, phases, step_s, has_stated=is_only)
    return ComparedRun(views.name, data), RunSettings(views.run, settings)

"""Computes the summaries of a run's phases from its recordings."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cli.errors import CasstatError
from cli.recordings.merge_options import MergeSettings
from cli.recordings.merge_program import merged
from collector.runs.phases import TOTAL
from collector.runs.run_file import Run, RunPhase
from exporters.summary.phase_summary import NEEDS, PhaseSummary, peak_rows, peaks_between, phase_values

# An interval that contains every time since the epoch, so that a merge yields a single row.
WHOLE_S = 1e11


@dataclass(frozen=True)
class RunSummary:
    """The summaries of a run's phases, and the number of lost ticks by node."""

    phases: list[PhaseSummary]
    lost: Mapping[str, int]


def summary_of(folder: Path, run: Run) -> RunSummary:
    """Return the summaries of the measured phases, and then of all of them together if there are several.

    Each covers the ticks that lie completely inside the phase. A run without phases is summarised as a whole. Phases
    without data are left out. Raises CasstatError and click.UsageError.
    """
    slowest_s = max((node.interval_s or 0.0 for node in run.nodes), default=0.0)
    peaks, _ = merged(MergeSettings((folder,), interval=slowest_s or None), peak_rows, quiet=True)
    rows = [(node.node, node.product) for node in peaks.nodes]
    summaries = []
    for phase in _phases(run):
        # The tick that ends the first interval inside the phase.
        begin_s = phase.begin_s + slowest_s
        settings = MergeSettings((folder,), WHOLE_S)
        try:
            whole, choice = merged(settings, lambda *_: None, NEEDS, span=(begin_s, phase.end_s), quiet=True)
        except CasstatError:
            continue
        (cluster,) = whole.cluster.values()
        summaries.append(
            PhaseSummary(
                phase.name,
                phase.begin_s,
                phase.end_s,
                {**phase_values(choice, cluster, len(whole.nodes)), "time": phase.end_s},
                peaks_between(begin_s, phase.end_s, rows),
            )
        )
    return RunSummary(summaries, {node.node: node.missed + node.integrity.lost for node in peaks.nodes})


def _phases(run: Run) -> list[RunPhase]:
    """Return the measured phases and their total, or the whole run if it has no phases."""
    if not run.phases:
        end_s = max((node.end_s for node in run.nodes if node.end_s is not None), default=run.begin_s)
        return [RunPhase(TOTAL, run.begin_s, end_s if run.end_s is None else run.end_s)]
    phases = [phase for phase in run.phases if phase.measured]
    if len(phases) < 2:
        return phases
    return [*phases, RunPhase(TOTAL, phases[0].begin_s, phases[-1].end_s)]

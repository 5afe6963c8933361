"""The recordings, the time range and the clock corrections that commands take from a run's metadata."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.errors import CasstatError
from cli.parameters.time_types import TimeOfDay
from collector.journal.segments import journal_files
from collector.printable import one_line
from collector.runs.run import ClientHost, Run, RunNode
from collector.runs.run_file import FILE, RunFileError, is_run, read_run

if TYPE_CHECKING:
    from collector.cluster.clock_correction import ClockCorrection
    from collector.cluster.recordings import Recording


# A run's recordings are in `nodes/NODE/FILE`.
_RUN_DEPTH = 3
MIN_CHANGE_S = 0.5
"""If a node's clock changed by more than this during a run, its recording is searched for steps."""


def run_at(paths: Sequence[Path]) -> Run | None:
    """Return the run if the only path is a run directory; None if no path belongs to a run.

    Raises click.UsageError for any other combination of paths, because the time range and the clocks are then unknown,
    and CasstatError if the run's file cannot be read.
    """
    folder = next(filter(is_run, paths), None)
    if folder is None:
        for path in paths:
            _require_no_run_around(path)
        return None
    if len(set(paths)) > 1:
        raise click.UsageError(f"{folder}: a run cannot be combined with other recordings")
    return read_run_in(folder)


def _require_no_run_around(path: Path) -> None:
    """Raise click.UsageError if a path is part of a run or contains runs: their clock offsets would not be applied."""
    for parent in path.absolute().parents[:_RUN_DEPTH]:
        if is_run(parent):
            raise click.UsageError(f"{path} is part of the run {parent} (hint: use the run's directory, and --nodes)")
    runs = sorted(run.parent.name for run in path.glob(f"*/{FILE}")) if path.is_dir() else []
    if runs:
        raise click.UsageError(f"{path} contains runs (hint: use one of them, such as {path / runs[0]})")


def read_run_in(folder: Path) -> Run:
    """Return the run in a directory. Raises CasstatError if the run's file cannot be read."""
    try:
        return read_run(folder)
    except OSError as error:
        raise CasstatError(f"{folder / FILE}: {error.strerror}") from None
    except RunFileError as error:
        raise CasstatError(f"{folder / FILE}: {error}") from None


def limits_of(run: Run | None, phase: str | None) -> tuple[float, float | None] | None:
    """Return the time range of a run or of one of its phases; None without a run. Raises click.UsageError.

    The end is None if the run has not ended.
    """
    if phase is None:
        return None if run is None else (run.begin_s, run.end_s)
    if run is None:
        raise click.UsageError("--phase requires a run directory")
    try:
        limits = run.phase(phase)
    except KeyError:
        names = one_line(", ".join(known.name for known in run.phases))
        hint = f"choose from {names}" if names else "omit --phase, because the run has no phases"
        raise click.BadParameter(f"unknown phase '{one_line(phase)}' (hint: {hint})", param_hint="--phase") from None
    return limits.begin_s, limits.end_s


@dataclass(frozen=True)
class NodeFiles:
    """The files of one node's recording, and the time range to read, on the node's clock.

    `begin` and `end` are the user's, or those of the run or phase.
    """

    files: list[Path]
    begin: float | TimeOfDay | None
    end: float | TimeOfDay | None


def files_by_node(
    path: Path, phase: str | None, begin: float | TimeOfDay | None, end: float | TimeOfDay | None
) -> dict[Path, NodeFiles]:
    """Return the recordings at a path, keyed by directory; for a run, only those of its nodes.

    Raises CasstatError and click.UsageError.
    """
    run = read_run_in(path) if is_run(path) else None
    limits = limits_of(run, phase)
    if run is None or limits is None:
        files: dict[Path, list[Path]] = {}
        for file in _files_in(path):
            files.setdefault(file.parent, []).append(file)
        return {folder: NodeFiles(of_node, begin, end) for folder, of_node in files.items()}
    nodes = {}
    for node in run.nodes:
        if recording := _recording_of(node, run):
            clock = node.clock_correction()
            nodes[path / recording] = NodeFiles(
                _files_in(path / recording),
                clock.node_s(limits[0]) if begin is None else begin,
                end if end is not None or limits[1] is None else clock.node_s(limits[1]),
            )
    return nodes


def _files_in(path: Path) -> list[Path]:
    """Return the journal files at a path. Raises CasstatError."""
    try:
        return list(journal_files(path))
    except OSError as error:
        raise CasstatError(f"{error.filename}: {error.strerror}") from None


def recordings_in(folder: Path, run: Run) -> list[Path]:
    """Return the directories of a run's recordings, without others such as those that are being recovered.

    While the run is being recorded, they include the journals of private agents.
    """
    return [folder / path for node in run.nodes if (path := _recording_of(node, run))]


def _recording_of(node: RunNode, run: Run) -> str:
    return node.folder or (node.journal if run.end_s is None else "")


def clocks_of(folder: Path, run: Run, node_recordings: Iterable["Recording"]) -> "dict[str, ClockCorrection]":
    """Return a run's clock corrections, keyed by node; recordings are matched to the run's nodes by directory."""
    by_folder = {(folder / path).resolve(): node for node in run.recorded if (path := _recording_of(node, run))}
    return {
        recording.node: _clock_of(run, by_folder[node_folder], recording)
        for recording in node_recordings
        if (node_folder := recording.sessions[-1].folder.resolve()) in by_folder
    }


def _clock_of(run: Run, node: RunNode, recording: "Recording") -> "ClockCorrection":
    """Return the correction of a node's clock, with the steps in its recording if its clock or the run's was set."""
    from collector.cluster.clock_steps import clock_segments

    measured = [(clock.at_s, clock.offset_s) for clock in node.clocks]
    if isinstance(node, ClientHost) and not node.address:
        # This machine's own clock, which is ahead of the run's by the steps since the run began.
        end_s = run.begin_s if run.end_s is None else run.end_s
        measured = [(run.begin_s, 0.0), (end_s, sum(step.step_s for step in run.clock_steps))]
    offsets_s = [offset_s for _, offset_s in measured]
    is_set = bool(offsets_s) and max(offsets_s) - min(offsets_s) > MIN_CHANGE_S
    if not is_set and not run.clock_steps:
        return node.clock_correction()
    return replace(node.clock_correction(), segments=clock_segments(recording, measured))

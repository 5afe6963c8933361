"""The time range and the clock corrections that merging commands take from a run's metadata."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cli.errors import CasstatError
from collector.runs.run_file import FILE, Run, RunFileError, RunNode, is_run, read_run

if TYPE_CHECKING:
    from collector.cluster.clock_correction import ClockCorrection
    from collector.cluster.recordings import Recording


# A run's recordings are in `nodes/NODE/FILE`.
_RUN_DEPTH = 3


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
    try:
        return read_run(folder)
    except OSError as error:
        raise CasstatError(f"{folder / FILE}: {error.strerror}") from None
    except RunFileError as error:
        raise CasstatError(f"{folder / FILE}: {error}") from None


def _require_no_run_around(path: Path) -> None:
    """Raise click.UsageError for a part of a run, or a directory of runs, whose clock offsets would not be applied."""
    for parent in path.absolute().parents[:_RUN_DEPTH]:
        if is_run(parent):
            raise click.UsageError(f"{path} is part of the run {parent} (hint: use the run's directory, and --nodes)")
    runs = sorted(run.parent.name for run in path.glob(f"*/{FILE}")) if path.is_dir() else []
    if runs:
        raise click.UsageError(f"{path} contains runs (hint: use one of them, such as {path / runs[0]})")


def recordings_in(folder: Path, run: Run) -> list[Path]:
    """Return the directories of a run's recordings; others, such as those that are being recovered, do not count.

    While the run is being recorded, they include the journals of private agents.
    """
    return [folder / path for node in run.nodes if (path := _recording_of(node, run))]


def _recording_of(node: RunNode, run: Run) -> str:
    return node.folder or (node.journal if run.end_s is None else "")


def clocks_of(folder: Path, run: Run, node_recordings: Iterable["Recording"]) -> "dict[str, ClockCorrection]":
    """Return a run's clock corrections, keyed by the recording's node; nodes are identified by their directories."""
    by_folder = {
        (folder / path).resolve(): node.clock_correction()
        for node in run.recorded
        if (path := _recording_of(node, run))
    }
    return {
        recording.node: by_folder[node_folder]
        for recording in node_recordings
        if (node_folder := recording.sessions[-1].folder.resolve()) in by_folder
    }

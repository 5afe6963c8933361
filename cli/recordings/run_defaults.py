"""The time range and the clock offsets that merging commands take from a run's metadata."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cli.errors import CasstatError
from collector.runs.run_file import FILE, Run, RunFileError, is_run, read_run

if TYPE_CHECKING:
    from collector.cluster.recordings import Recording


def runs_of(paths: Iterable[Path]) -> dict[Path, Run]:
    """Return the runs among the paths by their directory. Raises CasstatError if a run's file cannot be read."""
    return {path: _run(path) for path in paths if is_run(path)}


def _run(folder: Path) -> Run:
    try:
        return read_run(folder)
    except OSError as error:
        raise CasstatError(f"{folder / FILE}: {error.strerror}") from None
    except RunFileError as error:
        raise CasstatError(f"{folder / FILE}: {error}") from None


def range_of(paths: Sequence[Path], runs: dict[Path, Run]) -> tuple[float | None, float | None]:
    """Return the time range of the runs; None for both ends if a path is not a run."""
    if len(runs) < len(set(paths)):
        return None, None
    return min(run.begin_s for run in runs.values()), max(run.end_s for run in runs.values())


def offsets_of(runs: dict[Path, Run], node_recordings: Iterable["Recording"]) -> dict[str, float]:
    """Return the clock offsets, by recording's node, that the runs contain; nodes are identified by their folders."""
    by_folder = {
        (folder / node.folder).resolve(): node.offset_s()
        for folder, run in runs.items()
        for node in run.nodes
        if node.folder
    }
    return {
        recording.node: by_folder[folder]
        for recording in node_recordings
        if (folder := recording.sessions[-1].folder.resolve()) in by_folder
    }

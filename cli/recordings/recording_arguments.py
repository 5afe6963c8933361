"""The recordings and runs that are given to commands, and the options that `casstat merge` and other commands share.

Each has files, a time range, a clock correction and findings.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from math import inf, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.errors import CasstatError
from cli.line.line_program import missing_recorded_message
from cli.parameters.parameter_types import Duration, TimeOfDay, bounds, name_of, range_options, with_options
from cli.parameters.recording_options import RecordingPath
from collector.file_access import file_errors
from collector.load_results import result_file
from collector.load_results.client_result import ClientResult
from collector.load_results.result_file import ResultFileError, read_result
from collector.merge.clock_correction import MIN_STEP_S
from collector.printable import count_text, one_line
from collector.recording.header import MAX_SERIES
from collector.recording.journal_files import journal_files
from collector.runs.run import MAX_OFFSET_S, Run, RunNode
from collector.runs.run_file import FILE, RunFileError, is_run, read_run

if TYPE_CHECKING:
    from collector.merge.clock_correction import ClockCorrection
    from collector.merge.recordings import Recording
    from collector.recording.reader import Finding, Integrity

# A run's recordings are in `nodes/NODE/FILE`.
_RUN_DEPTH = 3
RESULT_SUFFIX = ".json"


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


def run_in(folder: Path) -> Run:
    """Return the run in a directory. Raises CasstatError, and click.UsageError as `run_at`."""
    run = run_at([folder])
    if run is None:
        raise CasstatError(f"{folder}: not a run directory")
    return run


def read_run_in(folder: Path) -> Run:
    """Return the run in a directory. Raises CasstatError if the run's file cannot be read."""
    try:
        with file_errors(folder / FILE, CasstatError):
            return read_run(folder)
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

    `begin` and `end` are the user's, or those of the run or phase, which are further apart if the clock was set.
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
        return {folder: NodeFiles(files, begin, end) for folder, files in _by_folder(_files_in(path)).items()}
    nodes = {}
    for node in run.nodes:
        if recording := _recording_of(node, run):
            folder = path / recording
            clock = _clock_of(run, node, _only_recording(folder) if _was_set(run, node) else None)
            begin_s, end_s = clock.shown_s(limits[0], inf if limits[1] is None else limits[1])
            nodes[folder] = NodeFiles(
                _files_in(folder), begin_s if begin is None else begin, end_s if end is None else end
            )
    return nodes


def _only_recording(folder: Path) -> "Recording | None":
    """Return the recording in a node's directory; None if it has no ticks. Raises CasstatError."""
    from collector.merge.recordings import recordings, sessions

    with file_errors(folder, CasstatError):
        return next(iter(recordings(sessions([folder])[0])[0]), None)


def _files_in(path: Path) -> list[Path]:
    """Return the journal files at a path. Raises CasstatError."""
    with file_errors(path, CasstatError):
        return list(journal_files(path))


def _by_folder(files: Iterable[Path]) -> dict[Path, list[Path]]:
    by_folder: dict[Path, list[Path]] = {}
    for file in files:
        by_folder.setdefault(file.parent, []).append(file)
    return by_folder


def recordings_in(folder: Path, run: Run) -> list[Path]:
    """Return the directories of a run's recordings, without others such as those that are being recovered.

    While the run is being recorded, they include the journals of private agents.
    """
    return [folder / path for node in run.nodes if (path := _recording_of(node, run))]


def nodes_without_recording(folder: Path, run: Run, merged: Mapping[str, Iterable[Path]]) -> list[RunNode]:
    """Return the nodes of the run in `folder` without merged recordings; `merged` are the directories of the others."""
    known = {path.resolve() for paths in merged.values() for path in paths}
    return [
        node for node in run.nodes if not (path := _recording_of(node, run)) or (folder / path).resolve() not in known
    ]


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


def _was_set(run: Run, node: RunNode) -> bool:
    """Return whether a node's clock may have been set during a run."""
    offsets_s = [clock.offset_s for clock in node.clocks]
    changes_s = [max(offsets_s, default=0.0) - min(offsets_s, default=0.0), *(step.step_s for step in run.clock_steps)]
    return any(abs(change_s) > MIN_STEP_S for change_s in changes_s)


def _clock_of(run: Run, node: RunNode, recording: "Recording | None") -> "ClockCorrection":
    """Return the correction of a node's clock, with the steps in its recording if the clock may have been set."""
    stepped = None
    if recording is not None and _was_set(run, node):
        from collector.merge.clock_correction import clock_with_steps

        stepped = clock_with_steps(recording, [(clock.at_s, clock.offset_s) for clock in node.clocks])
    return stepped or node.clock_correction()


def results_in(folder: Path) -> list[ClientResult]:
    """Return the results that have been imported into a run. Raises CasstatError."""
    return [result for _, result in stored_results(folder)]


def stored_results(folder: Path) -> Iterator[tuple[Path, ClientResult]]:
    """Yield the results in a run, each with its file. Raises CasstatError."""
    for path in sorted((folder / result_file.FOLDER).glob(f"*{RESULT_SUFFIX}")):
        try:
            with file_errors(path, CasstatError):
                yield path, read_result(path)
        except ResultFileError as error:
            raise CasstatError(f"{path}: {error}") from None


def finding_text(file: Path, finding: "Finding") -> str:
    """Return a one-line description of a finding in a file."""
    return f"{file}: byte {finding.offset}: {finding.reason}"


def integrity_text(integrity: "Integrity") -> str:
    """Return the number of defects of each kind as text; "" if there are none."""
    counts = [
        (integrity.damaged, "damaged section", "damaged sections"),
        (integrity.lost, "tick lost", "ticks lost"),
        (integrity.repeated, "tick repeated or out of order", "ticks repeated or out of order"),
        (integrity.unfinished, "session without a footer", "sessions without a footer"),
        (integrity.continued, "session without its last file", "sessions without their last file"),
    ]
    return ", ".join(count_text(*count) for count in counts if count[0])


def unfinished_text(folder: Path) -> str:
    """Return the message for a directory that has a session without a footer and is not known to be in use."""
    from collector.recording.journal_files import LockState, lock_state
    from collector.recording.writer import LOCK

    if lock_state(folder) is not LockState.UNKNOWN:
        return "no footer: the recorder was killed, or the file was truncated"
    lock = folder / LOCK
    try:
        users = " or ".join(dict.fromkeys((lock.owner(), "root")))
    except (OSError, KeyError):
        users = "root"
    return (
        f"no footer: cannot tell whether a recorder is still writing: no permission to open {lock} "
        f"(hint: run this command as {users})"
    )


def recorded_bounds(
    begin: float | TimeOfDay | None, end: float | TimeOfDay | None, files: Sequence[Path]
) -> tuple[float, float]:
    """Return a time range in seconds since the epoch; a time of day is resolved within the recording in `files`.

    Raises CasstatError.
    """
    first_s, last_s = float("-inf"), float("inf")
    if isinstance(begin, TimeOfDay) or isinstance(end, TimeOfDay):
        from collector.merge.recordings import sessions

        with file_errors("the recordings", CasstatError):
            recorded, _ = sessions(files)
        if not recorded:
            return first_s, last_s
        first_s, last_s = min(session.begin_s for session in recorded), max(session.end_s for session in recorded)
    return bounds(begin, end, first_s, last_s)


def check_names(keyspace: str, table: str, files: Iterable[Path], max_series: int) -> None:
    """Raise CasstatError unless one of the files contains the keyspace and the table; an empty name is not checked.

    Also raises click.UsageError if a table is given without a keyspace, and TooManySeriesError if there are more than
    `max_series` series.
    """
    if table and not keyspace:
        raise click.UsageError("--table needs --keyspace")
    if not keyspace:
        return
    from collector.recording.header import SeriesLimit
    from collector.recording.journal_files import recorded_tables

    existing: set[tuple[str, str]] = set()
    for folder, of_folder in _by_folder(files).items():
        with file_errors(folder, CasstatError):
            for name in recorded_tables(of_folder, SeriesLimit(max_series, str(folder))):
                if fnmatchcase(name[0], keyspace) and (fnmatchcase(name[1], table) if table else True):
                    return
                existing.add(name)
    raise CasstatError(missing_recorded_message(keyspace, table, existing))


MIN_S, MAX_S = 0.001, 86400.0


@dataclass(frozen=True)
class MergeSettings:
    """Merge options.

    phase   the phase of a run to which the time range is limited.
    points  the maximum number of intervals; ignored if `interval` is set. If both are None, the default interval
            applies.
    """

    paths: tuple[Path, ...]
    interval: float | None = None
    begin: float | TimeOfDay | None = None
    end: float | TimeOfDay | None = None
    nodes: str = ""
    clocks: tuple[tuple[str, float], ...] = ()
    keyspace: str = ""
    table: str = ""
    phase: str | None = None
    points: int | None = None
    max_series: int = MAX_SERIES


def _clock(text: str) -> tuple[str, float]:
    """Return the node, and the seconds by which its clock is ahead, in NODE=SECONDS. Raises ValueError."""
    node, _, number = text.rpartition("=")
    try:
        seconds = float(number)
    except ValueError:
        seconds = nan
    # Reject NaN, and offsets of more than a century, which must be typos.
    if not abs(seconds) <= MAX_OFFSET_S:
        raise ValueError(f"'{text}': expected NODE=SECONDS, with at most {MAX_OFFSET_S:.0f} seconds")
    return node, seconds


def merge_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that all merging commands share."""
    options = [
        click.argument("paths", type=RecordingPath(), nargs=-1, required=True),
        click.option(
            "-i",
            "--interval",
            type=Duration(MIN_S, MAX_S),
            help="Interval between rows."
            "  [merge: 5s; plot: chosen to give at most 300 points; the recording's if longer]",
        ),
        range_options,
        click.option(
            "--nodes",
            default="",
            metavar="NAMES",
            help="Nodes to include, comma-separated (patterns with * and ? allowed).  [all]",
        ),
        click.option(
            "--clock",
            "clocks",
            type=_clock,
            multiple=True,
            metavar="NODE=SECONDS",
            help="Seconds by which NODE's clock is ahead (repeatable).",
        ),
        click.option("--phase", metavar="NAME", help="Use only this phase of a run."),
        click.option(
            "-k",
            "--keyspace",
            metavar="NAME",
            callback=name_of,
            help="Show this keyspace's local reads and writes instead of the whole node's.",
        ),
        click.option(
            "-c",
            "--table",
            metavar="NAME",
            callback=name_of,
            help="Show this table instead of the whole keyspace (requires --keyspace).",
        ),
    ]
    return with_options(options, command)

"""Merges recordings and writes tables, for `casstat merge` and other commands that use merged recordings."""

import io
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from operator import itemgetter
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from cli.errors import ANALYSIS, CasstatError, note, require_packages
from cli.parameters.parameter_types import bounds
from cli.parameters.recording_options import output_folder
from cli.recordings import recording_arguments
from cli.recordings.merge_cluster import MergeCluster
from cli.recordings.recording_arguments import MAX_S, MergeSettings
from cli.recordings.views import Step, View, Views, completed, job_of
from collector.file_access import file_errors
from collector.printable import one_line

if TYPE_CHECKING:
    from collector.merge.clock_correction import ClockCorrection
    from collector.merge.grid import Grid
    from collector.merge.merge_job import Job, Merged, NodeRun
    from collector.merge.recordings import Recording
    from collector.runs.run import Run, RunNode
    from exporters.rows.operation_columns import Operations
    from exporters.rows.row_files import Files, WrittenFiles

# A merge of this many nodes or fewer finishes too quickly for a progress bar.
MAX_NODES_WITHOUT_PROGRESS = 8
# The intervals, in seconds, to choose from if the number of points is limited.
USUAL_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)


def recording_views(settings: MergeSettings, *, quiet: bool = False, cluster: MergeCluster | None = None) -> Views:
    """Return an object for views of the recordings.

    quiet    whether to omit notes about the recordings.
    cluster  the cluster that merges; None for this machine.
    """
    return Views(partial(_merged_views, settings, quiet, cluster))


def _merged_views(
    settings: MergeSettings, quiet: bool, cluster: MergeCluster | None, views: "Sequence[View[Any]]"
) -> "list[tuple[Merged[Any], Operations]]":
    source = recording_arguments.run_at(settings.paths)
    node_recordings = _recordings(settings, source, quiet=quiet, cluster=cluster)
    operations = _operations(settings, node_recordings)
    clocks = _clocks(settings, node_recordings, source, quiet=quiet)
    jobs = []
    for view in views:
        settings_of_view = replace(settings, points=view.points or settings.points)
        grid = view.grid or _grid_of(settings_of_view, node_recordings, clocks, source)
        jobs.append(job_of(view, grid, clocks, operations, settings.max_series))
    runs = _merge(node_recordings, jobs, cluster)
    if not quiet and runs[0].indices:
        _report_defects(settings, node_recordings, runs[0])
    return [(run, operations) for run in runs]


def _operations(settings: MergeSettings, node_recordings: list["Recording"]) -> "Operations":
    """Return which reads and writes the rows show. Raises CasstatError, click.UsageError and TooManySeriesError."""
    from exporters.rows.operation_columns import Operations

    sessions = [session for recording in node_recordings for session in recording.sessions]
    files = (file for session in sessions for file in session.files)
    recording_arguments.check_names(settings.keyspace, settings.table, files, settings.max_series)
    local = all(session.head.way == "nodetool" for session in sessions)
    return Operations(settings.keyspace, settings.table, local=local)


def _merge(
    node_recordings: list["Recording"], jobs: "Sequence[Job[Any]]", cluster: MergeCluster | None
) -> "list[Merged[Any]]":
    """Merge the recordings; show the progress if there are many nodes. Raises CasstatError and TooManySeriesError."""
    from collector.merge.merge import merge_all

    has_progress = len(node_recordings) > MAX_NODES_WITHOUT_PROGRESS and sys.stderr.isatty()
    shown_in = sys.stderr if has_progress else io.StringIO()
    with (
        file_errors("the recordings", CasstatError),
        click.progressbar(length=len(node_recordings), label="nodes", file=shown_in) as bar,
    ):
        if cluster is not None:
            return cluster.merge(node_recordings, jobs, bar.update)
        return merge_all(node_recordings, jobs, os.cpu_count() or 1, bar.update)


def _report_defects(settings: MergeSettings, node_recordings: list["Recording"], run: "Merged[Any]") -> None:
    """Print a note about each node whose recording has defects."""
    from collector.recording.journal_files import without_open_session
    from collector.recording.reader import Integrity

    is_directory = all(path.is_dir() for path in settings.paths)
    for node, recording in zip(run.nodes, node_recordings, strict=True):
        integrity, _ = without_open_session(node.integrity, recording.sessions[-1].folder, is_directory=is_directory)
        if integrity != Integrity():
            text = recording_arguments.integrity_text(integrity)
            note(f"{one_line(node.node)}: {text} (hint: run 'casstat journal check')")


def merge_into(settings: MergeSettings, folder: Path, *, cluster: MergeCluster | None = None) -> list[Path]:
    """Merge the recordings into tables in a directory, on a cluster if one is given; return the tables' paths.

    Prints notes about the recordings. Raises the same errors as `View.merged`.
    """
    views = recording_views(settings, cluster=cluster)
    return completed(tables(views, settings, folder, is_packed=cluster is not None))


def tables(views: Views, settings: MergeSettings, folder: Path, *, is_packed: bool = False) -> Step[list[Path]]:
    """Write tables to a directory; return their paths. Raises the same errors as `View.merged`.

    `is_packed` states that the processes that merge may be unable to write to the directory.
    """
    from collector.merge.aggregation import NAME
    from exporters.rows.merged_rows import SUFFIXES, header_text, rows_text, table_of
    from exporters.rows.row_files import files_of, join, moved, unpacked, write_files, write_parts

    name = run_name(settings)
    with output_folder(folder), TemporaryDirectory(dir=folder, prefix=".parts-") as temporary:
        parts = Path(temporary)
        view: View[Any] = View(views, partial(pack_node, name) if is_packed else partial(write_node, parts, name))
        yield
        run, operations = view.merged()
        node_files = [write_parts(parts, unpacked(node.product)) if is_packed else node.product for node in run.nodes]
        table = table_of(operations)
        nodes = len(run.nodes) + len(absent_nodes(settings, run))
        rows = (table.cluster_row(sample, nodes) for _, sample in sorted(run.cluster.items()))
        files = [write_parts(parts, files_of(table, name, NAME, rows_text(table.header, rows))), *node_files]
        header = zip(SUFFIXES, header_text(table.header), strict=True)
        paths = write_files(folder, [(PurePosixPath(f"rows{suffix}"), line.encode()) for suffix, line in header])
        join(paths, [written.rows for written in files])
        return [*paths, *(moved(path, parts, folder) for written in files for path in written.others)]


def absent_nodes(settings: MergeSettings, run: "Merged[Any]") -> "list[RunNode]":
    """Return the nodes that are missing in a merge because a run has no recording of them; raise as `run_at` does.

    If nodes were chosen, the others are not missing.
    """
    source = None if settings.nodes else recording_arguments.run_at(settings.paths)
    return [] if source is None else recording_arguments.nodes_without_recording(settings.paths[0], source, run.folders)


def run_name(settings: MergeSettings) -> str:
    """Return the run's name, which is the last component of the first path."""
    return settings.paths[0].resolve().name


def write_series(settings: MergeSettings, folder: Path, cluster: MergeCluster | None = None) -> Iterator[Path]:
    """Write all recorded values to Parquet files in a directory; yield the files' paths.

    With a cluster, its workers make the files. Raises CasstatError, TooManySeriesError and click.UsageError.
    """
    require_packages("--series", *ANALYSIS, "pyarrow")
    from exporters.rows import parquet_series
    from exporters.rows.row_files import write_files

    source = recording_arguments.run_at(settings.paths)
    node_recordings = _recordings(settings, source, quiet=True, cluster=cluster)
    clocks = _clocks(settings, node_recordings, source)
    run = run_name(settings)
    with output_folder(folder):
        if cluster is None:
            for recording in node_recordings:
                yield from parquet_series.write_series(
                    recording, clocks[recording.node], folder, run, settings.max_series
                )
        else:
            task = partial(parquet_series.packed_series, run=run, max_series=settings.max_series)
            for files in cluster.results(task, node_recordings, clocks):
                yield from write_files(folder, files.result())


def write_node(folder: Path, run: str, operations: "Operations", node: "NodeRun") -> "WrittenFiles":
    """Write a node's rows to files in a directory; return where they are."""
    from exporters.rows.row_files import write_parts

    return write_parts(folder, _node_files(run, operations, node))


def pack_node(run: str, operations: "Operations", node: "NodeRun") -> "Files":
    """Return the files with a node's rows, compressed."""
    from exporters.rows.row_files import packed

    return packed(_node_files(run, operations, node))


def _node_files(run: str, operations: "Operations", node: "NodeRun") -> "Files":
    from exporters.rows.column_arrays import node_text
    from exporters.rows.merged_rows import table_of
    from exporters.rows.row_files import files_of

    table = table_of(operations)
    return files_of(table, run, node.node, node_text(table, node))


def _recordings(
    settings: MergeSettings, source: "Run | None", *, quiet: bool = False, cluster: MergeCluster | None = None
) -> list["Recording"]:
    """Return the chosen nodes' recordings; print notes about all recordings, unless `quiet` is set.

    Raises CasstatError.
    """
    from collector.merge.recordings import recordings, sessions

    with file_errors("the recordings", CasstatError):
        folders = settings.paths if source is None else recording_arguments.recordings_in(settings.paths[0], source)
        all_sessions, foreign = sessions(folders) if cluster is None else cluster.sessions(folders)
    node_recordings, notes = recordings(all_sessions)
    for line in () if quiet else (*foreign, *notes):
        note(line)
    patterns = [name.strip() for name in settings.nodes.split(",") if name.strip()]
    chosen = [
        recording
        for recording in node_recordings
        if not patterns or any(fnmatchcase(recording.node, pattern) for pattern in patterns)
    ]
    where = ", ".join(str(path) for path in settings.paths)
    if not node_recordings:
        raise CasstatError(f"{where}: no recordings found")
    if not chosen:
        raise CasstatError(f"{where}: no recording matches --nodes (hint: choose from {_names(node_recordings)})")
    return chosen


def _names(node_recordings: list["Recording"]) -> str:
    return one_line(", ".join(recording.node for recording in node_recordings))


def _clocks(
    settings: MergeSettings, node_recordings: list["Recording"], source: "Run | None", *, quiet: bool = False
) -> "dict[str, ClockCorrection]":
    """Return the correction of every node's clock; --clock takes precedence over the run's measurements.

    Prints a note if clocks seem to be wrong, unless `quiet` is set. Raises click.BadParameter.
    """
    from collector.merge.clock_correction import IDENTITY, ClockCorrection

    for node, _ in settings.clocks:
        if node not in [recording.node for recording in node_recordings]:
            raise click.BadParameter(
                f"no recording of {node!r} (hint: choose from {_names(node_recordings)})", param_hint="--clock"
            )
    clocks = {recording.node: IDENTITY for recording in node_recordings}
    if source is not None:
        clocks |= recording_arguments.clocks_of(settings.paths[0], source, node_recordings)
    clocks |= {node: ClockCorrection.constant(seconds) for node, seconds in settings.clocks}
    begins_s, ends_s = [], []
    for recording in node_recordings:
        clock = clocks[recording.node]
        # After a clock was set, the first and the last tick do not limit the others.
        if not clock.segments:
            begins_s.append(clock.reference_s(min(session.begin_s for session in recording.sessions)))
            ends_s.append(clock.reference_s(max(session.end_s for session in recording.sessions)))
    if quiet or len(begins_s) < 2:
        return clocks
    shared_s = min(ends_s) - max(begins_s)
    shortest_s = min(end_s - begin_s for begin_s, end_s in zip(begins_s, ends_s, strict=True))
    if shared_s < shortest_s / 2:
        overlap = f"overlap by only {shared_s:.0f} s" if shared_s > 0 else "have no common time range"
        note(f"the recordings {overlap} (hint: if a clock was wrong, correct it with --clock NODE=SECONDS)")
    return clocks


def _grid_of(
    settings: MergeSettings,
    node_recordings: list["Recording"],
    clocks: "dict[str, ClockCorrection]",
    source: "Run | None",
) -> "Grid":
    """Return the grid that follows from the settings, the recordings and, if they belong to a run, the run.

    Raises click.UsageError.
    """
    from collector.merge.grid import Grid

    sessions = [(session, recording.node) for recording in node_recordings for session in recording.sessions]
    first_s = min(clocks[node].reference_s(session.begin_s) for session, node in sessions)
    last_s = max(clocks[node].reference_s(session.end_s) for session, node in sessions)
    begin_s, end_s = _span(settings, source, first_s, last_s)
    slowest = max(((session.head.interval_s, node) for session, node in sessions), key=itemgetter(0))
    return Grid(interval_for(settings, *slowest, min(end_s, last_s) - max(begin_s, first_s)), begin_s, end_s)


def _span(settings: MergeSettings, source: "Run | None", first_s: float, last_s: float) -> tuple[float, float]:
    """Return the time range to merge; the recordings range from `first_s` to `last_s`. Raises click.UsageError."""
    begin, end = settings.begin, settings.end
    limits = recording_arguments.limits_of(source, settings.phase)
    if limits is not None:
        # The journals of a run begin before the run, so that its first tick already has rates.
        begin, end = limits[0] if begin is None else begin, limits[1] if end is None else end
    begin_s, end_s = bounds(begin, end, first_s, last_s)
    if source is None or settings.phase is not None:
        return begin_s, end_s
    # Ticks often fall exactly on the limits; an error in a clock's offset must not exclude them.
    error_s = max((clock.error_s for node in source.nodes for clock in node.clocks), default=0.0)
    return begin_s - error_s, end_s + error_s


def interval_for(settings: MergeSettings, slowest_s: float, slowest: str, length_s: float) -> float:
    """Return the interval, in seconds, for a time range of `length_s`. Raises click.BadParameter.

    `slowest_s` is the longest interval of a recording, and `slowest` is its node.
    """
    if settings.interval is None:
        return max(slowest_s, _usual(settings.points, length_s))
    if settings.interval < slowest_s:
        why = f"shorter than the interval of {one_line(slowest)}'s recording, {slowest_s:g} s"
        raise click.BadParameter(why, param_hint="--interval")
    return settings.interval


def _usual(points: int | None, length_s: float) -> float:
    """Return the shortest interval in USUAL_S that yields at most `points` intervals in `length_s`, else MAX_S.

    Returns the default interval if `points` is None.
    """
    from collector.merge.merge_job import DEFAULT_S

    if points is None:
        return DEFAULT_S
    enough = (interval_s for interval_s in USUAL_S if length_s / interval_s <= points)
    return next(enough, MAX_S)

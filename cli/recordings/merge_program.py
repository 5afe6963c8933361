"""Merges recordings, for `casstat merge` and the commands that show merged recordings."""

import io
import os
import sys
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from functools import partial
from hashlib import sha256
from importlib.util import find_spec
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypeVar

import click

from cli.errors import CasstatError, note
from cli.install_hint import install_command
from cli.parameters.output_folder import output_folder
from cli.parameters.time_types import bounds
from cli.recordings.merge_options import MAX_S, MergeSettings
from cli.recordings.recording_arguments import check_names, integrity_text
from cli.recordings.run_defaults import clocks_of, recordings_in, run_at
from collector.journal.read_limits import TooManySeriesError
from collector.printable import one_line

if TYPE_CHECKING:
    from collector.cluster.clock_correction import ClockCorrection
    from collector.cluster.grid import Grid
    from collector.cluster.merge_job import Merged, NodeRun
    from collector.cluster.recordings import Recording
    from collector.model.metric import Series
    from collector.runs.run_file import Run
    from exporters.files.merged_rows import Choice

    Make = Callable[[Choice, NodeRun], "Product"]

Product = TypeVar("Product")
USUAL_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)
# With this many nodes or fewer, a merge finishes too quickly for a progress bar.
MIN_NODES_FOR_PROGRESS = 8


class NoDataError(CasstatError):
    """The recordings have no tick in the time range."""


def merged(
    settings: MergeSettings,
    make: "Make[Product]",
    more: "frozenset[str | Series]" = frozenset(),
    *,
    grid: "Grid | None" = None,
    quiet: bool = False,
) -> "tuple[Merged[Product], Choice]":
    """Merge the recordings; return the merged run, with the result of `make` for each node, and the chosen operations.

    more   the metrics that are needed in addition to those in the rows.
    grid   the intervals, instead of those that follow from the settings.
    quiet  whether to omit notes about the recordings.

    Raises NoDataError if the time range contains no tick, other CasstatErrors and click.UsageError.
    """
    from collector.cluster.merge import merge
    from collector.cluster.merge_job import Job
    from collector.journal.summary import without_open_session
    from collector.journal.tick_order import Integrity
    from exporters.files.merged_rows import Choice, table_of

    source = run_at(settings.paths)
    node_recordings = _recordings(settings, source, quiet=quiet)
    all_sessions = [session for recording in node_recordings for session in recording.sessions]
    files = (file for session in all_sessions for file in session.files)
    check_names(settings.keyspace, settings.table, files, settings.max_series)
    local = all(session.head.way == "nodetool" for session in all_sessions)
    choice = Choice(settings.keyspace, settings.table, local)
    job = Job(
        grid or _grid(settings, node_recordings, source),
        _clocks(settings, node_recordings, source, quiet=quiet),
        table_of(choice).needs | more,
        partial(make, choice),
        settings.max_series,
    )
    has_progress = len(node_recordings) > MIN_NODES_FOR_PROGRESS and sys.stderr.isatty()
    with click.progressbar(
        length=len(node_recordings), label="nodes", file=sys.stderr if has_progress else io.StringIO()
    ) as bar:
        try:
            run = merge(node_recordings, job, os.cpu_count() or 1, bar.update)
        except OSError as error:
            raise CasstatError(f"{error.filename}: {error.strerror}") from None
    if not run.indices:
        raise NoDataError("no data in this time range")
    if quiet:
        return run, choice
    is_directory = all(path.is_dir() for path in settings.paths)
    for node, recording in zip(run.nodes, node_recordings, strict=True):
        integrity, _ = without_open_session(node.integrity, recording.sessions[-1].folder, is_directory=is_directory)
        if integrity != Integrity():
            note(f"{one_line(node.node)}: {integrity_text(integrity)} (hint: run 'casstat journal check')")
    return run, choice


def _grid(settings: MergeSettings, node_recordings: list["Recording"], source: "Run | None") -> "Grid":
    """Return the intervals that follow from the settings. Raises click.UsageError."""
    from collector.cluster.grid import Grid

    all_sessions = [session for recording in node_recordings for session in recording.sessions]
    first_s, last_s = min(session.begin_s for session in all_sessions), max(session.end_s for session in all_sessions)
    begin_s, end_s = _span(settings, source, first_s, last_s)
    return Grid(_interval(settings, node_recordings, min(end_s, last_s) - max(begin_s, first_s)), begin_s, end_s)


def _span(settings: MergeSettings, source: "Run | None", first_s: float, last_s: float) -> tuple[float, float]:
    """Return the time range to merge; the recordings range from `first_s` to `last_s`. Raises click.UsageError."""
    begin, end = settings.begin, settings.end
    limits = _limits(settings, source)
    if limits is not None:
        # The journals of a run begin before it, so that rates are known from its first tick on.
        begin, end = limits[0] if begin is None else begin, limits[1] if end is None else end
    begin_s, end_s = bounds(begin, end, first_s, last_s)
    if source is None or settings.phase is not None:
        return begin_s, end_s
    # Ticks are often exactly at the limits, and must not be left out because of the error of a clock's offset.
    error_s = max((clock.error_s for node in source.nodes for clock in node.clocks), default=0.0)
    return begin_s - error_s, end_s + error_s


def _limits(settings: MergeSettings, source: "Run | None") -> tuple[float, float | None] | None:
    """Return the time range of the run or of its phase; None if there is no run. Raises click.UsageError."""
    if settings.phase is None:
        return None if source is None else (source.begin_s, source.end_s)
    if source is None:
        raise click.UsageError("--phase requires the directory of a run")
    try:
        phase = source.phase(settings.phase)
    except KeyError:
        names = one_line(", ".join(phase.name for phase in source.phases))
        hint = f"choose from {names}" if names else "omit --phase, because the run has no phases"
        raise click.BadParameter(
            f"unknown phase '{one_line(settings.phase)}' (hint: {hint})", param_hint="--phase"
        ) from None
    return phase.begin_s, phase.end_s


def merge_into(settings: MergeSettings, folder: Path, *, quiet: bool = False) -> list[Path]:
    """Merge the recordings into tables in a directory; return the tables' paths.

    Prints notes about the recordings, unless `quiet` is set. Raises CasstatError.
    """
    from exporters.files.merged_rows import table_of
    from exporters.files.tsv_csv import header_text, join, rows_text, write_part

    with output_folder(folder), TemporaryDirectory(dir=folder, prefix=".parts-") as parts:
        run, choice = merged(settings, partial(write_rows, Path(parts)), quiet=quiet)
        table = table_of(choice)
        rows = (table.cluster_row(sample, len(run.nodes)) for _, sample in sorted(run.cluster.items()))
        cluster = write_part(Path(parts), "cluster", rows_text(table.header, rows))
        paths = write_part(folder, "rows", header_text(table.header))
        join(paths, [cluster, *(node.product for node in run.nodes)])
        if find_spec("pyarrow") is None:
            return list(paths)
        from exporters.files.parquet import write_rows as write_parquet

        return [*paths, *write_parquet(paths[1], folder, run_name(settings))]


def run_name(settings: MergeSettings) -> str:
    """Return the run's name, which is the last component of the first path."""
    return settings.paths[0].resolve().name


def write_series(settings: MergeSettings, folder: Path) -> Iterator[Path]:
    """Write all recorded values to Parquet files in a directory; yield the files' paths. Raises CasstatError."""
    if find_spec("pyarrow") is None or find_spec("numpy") is None:
        raise CasstatError(
            f"--series requires numpy and pyarrow (hint: run '{install_command('numpy', 'orjson', 'pyarrow')}')"
        )
    from collector.cluster.columnar.decode import UnsupportedError
    from exporters.files.parquet import write_series as write

    source = run_at(settings.paths)
    node_recordings = _recordings(settings, source, quiet=True)
    clocks = _clocks(settings, node_recordings, source)
    with output_folder(folder):
        failed = []
        for recording in node_recordings:
            clock = clocks[recording.node]
            try:
                yield from write(recording, clock, folder, run_name(settings), settings.max_series)
            except (UnsupportedError, TooManySeriesError) as error:
                failed.append(recording.node)
                note(f"{one_line(recording.node)}: cannot write Parquet: {error}")
    if failed:
        raise CasstatError(
            f"--series: {len(failed)} of {len(node_recordings)} nodes left out: {one_line(', '.join(failed))}"
        )


def write_rows(folder: Path, choice: "Choice", node: "NodeRun") -> tuple[Path, Path]:
    """Write a node's rows to its own pair of files; return their paths."""
    from exporters.files.merged_rows import table_of
    from exporters.files.tsv_csv import rows_text, write_part

    table = table_of(choice)
    name = sha256(node.node.encode(errors="replace")).hexdigest()
    return write_part(folder, name, rows_text(table.header, (row for _, row in table.node_rows(node))))


def _recordings(settings: MergeSettings, source: "Run | None", *, quiet: bool = False) -> list["Recording"]:
    from collector.cluster.recordings import recordings
    from collector.cluster.sessions import sessions

    try:
        all_sessions, foreign = sessions(settings.paths if source is None else recordings_in(settings.paths[0], source))
    except OSError as error:
        raise CasstatError(f"{error.filename}: {error.strerror}") from None
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
    """Return the correction of every node's clock; --clock takes precedence over the run's measurements."""
    from collector.cluster.clock_correction import IDENTITY, ClockCorrection

    for node, _ in settings.clocks:
        if node not in [recording.node for recording in node_recordings]:
            raise click.BadParameter(
                f"no recording of {node!r} (hint: choose from {_names(node_recordings)})", param_hint="--clock"
            )
    clocks = {recording.node: IDENTITY for recording in node_recordings}
    if source is not None:
        clocks |= clocks_of(settings.paths[0], source, node_recordings)
    clocks |= {node: ClockCorrection.constant(seconds) for node, seconds in settings.clocks}
    begins_s, ends_s = [], []
    for recording in node_recordings:
        clock = clocks[recording.node]
        begins_s.append(clock.reference_s(min(session.begin_s for session in recording.sessions)))
        ends_s.append(clock.reference_s(max(session.end_s for session in recording.sessions)))
    shared_s = min(ends_s) - max(begins_s)
    shortest_s = min(end_s - begin_s for begin_s, end_s in zip(begins_s, ends_s, strict=True))
    if not quiet and len(node_recordings) > 1 and shared_s < shortest_s / 2:
        overlap = f"overlap by only {shared_s:.0f} s" if shared_s > 0 else "have no common time range"
        note(f"the recordings {overlap} (hint: if a clock was wrong, correct it with --clock NODE=SECONDS)")
    return clocks


def _interval(settings: MergeSettings, node_recordings: list["Recording"], length_s: float) -> float:
    sessions = [
        (session.head.interval_s, recording.node) for recording in node_recordings for session in recording.sessions
    ]
    slowest_s, slowest = max(sessions, key=itemgetter(0))
    if settings.interval is None:
        return max(slowest_s, _usual(settings.points, length_s))
    if settings.interval < slowest_s:
        why = f"shorter than the interval of {one_line(slowest)}'s recording, {slowest_s:g} s"
        raise click.BadParameter(why, param_hint="--interval")
    return settings.interval


def _usual(points: int | None, length_s: float) -> float:
    """Return the shortest interval in USUAL_S that fits at most `points` times into `length_s`, or MAX_S if none does.

    Returns the default interval if `points` is None.
    """
    from collector.cluster.merge_job import DEFAULT_S

    if points is None:
        return DEFAULT_S
    enough = (interval_s for interval_s in USUAL_S if length_s / interval_s <= points)
    return next(enough, MAX_S)

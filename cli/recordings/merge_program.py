"""Which recordings to merge, and how: the options of all commands that do, and what they make of them."""

import io
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from hashlib import sha256
from importlib.util import find_spec
from math import nan
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeVar

import click

from cli.commands.line import name_of
from cli.errors import CasstatError, note
from cli.install_hint import install_command
from cli.parameters.output_folder import output_folder
from cli.parameters.time_types import Duration, TimeOfDay, bounds, range_options
from cli.recordings.recording_arguments import integrity_text
from collector.journal.read_limits import MAX_SERIES, TooManySeriesError
from collector.printable import one_line

if TYPE_CHECKING:
    from collector.cluster.merge_job import Merged, NodeRun
    from collector.cluster.recordings import Recording
    from exporters.files.merged_rows import Choice

    Make = Callable[[Choice, NodeRun], "Product"]

Product = TypeVar("Product")
Command = TypeVar("Command", bound=Callable[..., Any])
SHORTEST_S, LONGEST_S = 0.001, 86400.0
FURTHEST_S = 4e9
USUAL_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)
# So few nodes are merged before a bar would tell anything.
FEW = 8


@dataclass(frozen=True)
class MergeSettings:
    """The options, as the help explains them.

    points  how many intervals there should be at most, where nobody chose one.
    """

    paths: tuple[Path, ...]
    interval: float | None = None
    begin: float | TimeOfDay | None = None
    end: float | TimeOfDay | None = None
    nodes: str = ""
    clocks: tuple[tuple[str, float], ...] = ()
    keyspace: str = ""
    table: str = ""
    points: int | None = None
    max_series: int = MAX_SERIES


class Clock(click.ParamType["tuple[str, float]"]):
    """By how much a node's clock is ahead: NODE=SECONDS."""

    name = "clock"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, float]:
        """Return the node and the seconds."""
        node, _, text = str(value).rpartition("=")
        try:
            seconds = float(text)
        except ValueError:
            seconds = nan
        # No clock is off by more than all the time there was.
        if not abs(seconds) <= FURTHEST_S:
            self.fail(f"'{value}' is not NODE=SECONDS", param, ctx)
        return node, seconds


def merge_options(command: Command) -> Command:
    """Add the options that say what to merge."""
    options = [
        click.argument("paths", type=click.Path(path_type=Path), nargs=-1, required=True),
        click.option(
            "-i",
            "--interval",
            type=Duration(SHORTEST_S, LONGEST_S),
            help="Interval between rows.  [5s, or that of the recording if longer]",
        ),
        range_options("--to"),
        click.option(
            "--nodes",
            default="",
            metavar="NAMES",
            help="Nodes to include, comma-separated (patterns with * and ? allowed).  [all]",
        ),
        click.option(
            "--clock",
            "clocks",
            type=Clock(),
            multiple=True,
            metavar="NODE=SECONDS",
            help="Seconds by which the clock of NODE is ahead, repeatable.",
        ),
        click.option(
            "-k",
            "--keyspace",
            metavar="NAME",
            callback=name_of,
            help="Keyspace to show instead of the whole node: its local reads and writes.",
        ),
        click.option(
            "-c",
            "--table",
            metavar="NAME",
            callback=name_of,
            help="Table to show instead of the whole keyspace (requires --keyspace).",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def merged(
    settings: MergeSettings, make: "Make[Product]", more: frozenset[str] = frozenset()
) -> "tuple[Merged[Product], Choice]":
    """Read and merge what the settings say, and make of each node what `make` does; return what the rows are about.

    `more` are metrics that it needs beside those of the rows. Says what is to be known of the recordings. Raises
    CasstatError, click.UsageError.
    """
    from collector.cluster.grid import Grid
    from collector.cluster.merge import merge
    from collector.cluster.merge_job import Job
    from collector.journal.summary import settled
    from collector.journal.tick_order import Integrity
    from exporters.files.merged_rows import Choice, table_of

    if settings.table and not settings.keyspace:
        raise click.UsageError("--table needs --keyspace")
    found = _found(settings)
    every = [session for each in found for session in each.sessions]
    first_s, last_s = min(session.begin_s for session in every), max(session.end_s for session in every)
    begin_s, end_s = bounds(settings.begin, settings.end, first_s, last_s)
    grid = Grid(_interval(settings, found, min(end_s, last_s) - max(begin_s, first_s)), begin_s, end_s)
    local = all(session.head.way == "nodetool" for each in found for session in each.sessions)
    choice = Choice(settings.keyspace, settings.table, local)
    job = Job(
        grid, _offsets(settings, found), table_of(choice).needs | more, partial(make, choice), settings.max_series
    )
    shown = len(found) > FEW and sys.stderr.isatty()
    with click.progressbar(length=len(found), label="nodes", file=sys.stderr if shown else io.StringIO()) as bar:
        try:
            run = merge(found, job, os.cpu_count() or 1, bar.update)
        except OSError as error:
            raise CasstatError(f"{error.filename}: {error.strerror}") from None
    if not run.indices:
        raise CasstatError("nothing is recorded for that time")
    is_whole = all(path.is_dir() for path in settings.paths)
    for node, recording in zip(run.nodes, found, strict=True):
        integrity, _ = settled(node.integrity, recording.sessions[-1].folder, is_whole=is_whole)
        if integrity != Integrity():
            note(f"{one_line(node.node)}: {integrity_text(integrity)}: 'casstat journal check' says where")
    return run, choice


def merge_into(settings: MergeSettings, folder: Path) -> list[Path]:
    """Merge what the settings say into tables in a folder; return their paths. Raises CasstatError."""
    from exporters.files.merged_rows import table_of
    from exporters.files.tsv_csv import header_text, join, rows_text, write_part

    with output_folder(folder), TemporaryDirectory(dir=folder, prefix=".parts-") as parts:
        run, choice = merged(settings, partial(write_rows, Path(parts)))
        table = table_of(choice)
        rows = (table.cluster_row(each, len(run.nodes)) for _, each in sorted(run.cluster.items()))
        cluster = write_part(Path(parts), "cluster", rows_text(table.header, rows))
        paths = write_part(folder, "rows", header_text(table.header))
        join(paths, [cluster, *(node.product for node in run.nodes)])
        if find_spec("pyarrow") is None:
            return list(paths)
        from exporters.files.parquet import write_rows as write_parquet

        return [*paths, *write_parquet(paths[1], folder, run_name(settings))]


def run_name(settings: MergeSettings) -> str:
    """Return what to call the run: as the folder that was given."""
    return settings.paths[0].resolve().name


def write_series(settings: MergeSettings, folder: Path) -> Iterator[Path]:
    """Write all that was recorded into a folder as Parquet; yield the files. Raises CasstatError."""
    if find_spec("pyarrow") is None or find_spec("numpy") is None:
        raise CasstatError(f"--series needs numpy and pyarrow: {install_command('numpy', 'orjson', 'pyarrow')}")
    from collector.cluster.columnar.decode import UnsupportedError
    from exporters.files.parquet import write_series as write

    found = _found(settings, quiet=True)
    offsets = _offsets(settings, found)
    with output_folder(folder):
        failed = []
        for recording in found:
            offset_s = offsets.get(recording.node, 0.0)
            try:
                yield from write(recording, offset_s, folder, run_name(settings), settings.max_series)
            except (UnsupportedError, TooManySeriesError) as error:
                failed.append(recording.node)
                note(f"{one_line(recording.node)}: cannot be written as Parquet: {error}")
    if failed:
        raise CasstatError(f"--series: {len(failed)} of {len(found)} nodes are left out: {one_line(', '.join(failed))}")


def write_rows(folder: Path, choice: "Choice", node: "NodeRun") -> tuple[Path, Path]:
    """Write a node's rows into files of their own; return which they are."""
    from exporters.files.merged_rows import table_of
    from exporters.files.tsv_csv import rows_text, write_part

    table = table_of(choice)
    name = sha256(node.node.encode(errors="replace")).hexdigest()
    return write_part(folder, name, rows_text(table.header, (row for _, row in table.node_rows(node))))


def _found(settings: MergeSettings, *, quiet: bool = False) -> list["Recording"]:
    from collector.cluster.recordings import recordings, sessions

    try:
        every, foreign = sessions(settings.paths)
    except OSError as error:
        raise CasstatError(f"{error.filename}: {error.strerror}") from None
    found, notes = recordings(every)
    for line in () if quiet else (*foreign, *notes):
        note(line)
    patterns = [name.strip() for name in settings.nodes.split(",") if name.strip()]
    chosen = [each for each in found if not patterns or any(fnmatchcase(each.node, name) for name in patterns)]
    where = ", ".join(str(path) for path in settings.paths)
    if not found:
        raise CasstatError(f"{where}: nothing is recorded there")
    if not chosen:
        raise CasstatError(f"{where}: no recording of such a node; there are {_names(found)}")
    return chosen


def _names(found: list["Recording"]) -> str:
    return one_line(", ".join(each.node for each in found))


def _offsets(settings: MergeSettings, found: list["Recording"]) -> Mapping[str, float]:
    for node, _ in settings.clocks:
        if node not in [each.node for each in found]:
            raise click.BadParameter(f"no recording of {node!r}; there are {_names(found)}", param_hint="--clock")
    offsets = dict(settings.clocks)
    ahead = [(each, offsets.get(each.node, 0.0)) for each in found]
    begins_s = [min(session.begin_s for session in each.sessions) - ahead_s for each, ahead_s in ahead]
    ends_s = [max(session.end_s for session in each.sessions) - ahead_s for each, ahead_s in ahead]
    shared_s = min(ends_s) - max(begins_s)
    shortest_s = min(end_s - begin_s for begin_s, end_s in zip(begins_s, ends_s, strict=True))
    if len(found) > 1 and shared_s < shortest_s / 2:
        moments = f"are only {shared_s:.0f} s" if shared_s > 0 else "is no moment"
        note(f"there {moments} of which all recordings tell: are their clocks apart? --clock NODE=SECONDS mends it")
    return offsets


def _interval(settings: MergeSettings, found: list["Recording"], length_s: float) -> float:
    sessions = [(session.head.interval_s, each.node) for each in found for session in each.sessions]
    slowest_s, slowest = max(sessions, key=lambda each: each[0])
    if settings.interval is None:
        return max(slowest_s, _usual(settings.points, length_s))
    if settings.interval < slowest_s:
        why = f"{one_line(slowest)} was recorded every {slowest_s:g} s: nothing shorter is known of it"
        raise click.BadParameter(why, param_hint="--interval")
    return settings.interval


def _usual(points: int | None, length_s: float) -> float:
    """Return the shortest of the usual intervals that divides a time into no more than so many points."""
    from collector.cluster.merge_job import DEFAULT_S

    if points is None:
        return DEFAULT_S
    enough = (each for each in USUAL_S if length_s / each <= points)
    return next(enough, LONGEST_S)

"""Print the rows of a recording

The rows are those that casstat prints live. PATH is the DIR given to `casstat -w DIR`, its subdirectory DIR/NODE,
a single file, a run directory, or a URL of object storage (see `casstat upload --help`). Times are those of the
node's clock.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cli.commands import line
from cli.errors import CasstatError, note
from cli.line.node_selection import LineSettings
from cli.parameters.parameter_types import Duration, TimeOfDay, range_options
from cli.parameters.recording_options import ObjectUrl, RecordingPath, read_limits
from cli.recordings import recording_arguments
from cli.recordings.object_storage import local_copies
from cli.recordings.recording_arguments import NodeFiles, check_names, files_by_node, finding_text, recorded_bounds
from collector.file_access import file_errors
from collector.printable import one_line
from collector.recording.writer import folder_name

if TYPE_CHECKING:
    from collector.model.snapshot import Sample, Snapshot
    from collector.recording.reader import Entry

GROUP = "watch"

# The default command's options that select and format columns. Its other options select the node and its sources, which
# are those of the recording.
OF_THE_LINE = (
    *("count_option", "with_time", "epoch", "no_header", "keyspace", "table", "tables", "caches", "read_repair"),
    *("percentiles", "compactions", "wide", "columns", "output"),
)


@click.command(help=__doc__)
@click.argument("path", type=RecordingPath())
@click.option("-i", "--interval", type=Duration(0.001), help="Interval between rows.  [as recorded]")
@range_options
@click.option("--node", default="", metavar="NAME", help="Node to replay, if there are several.")
@click.option("--phase", metavar="NAME", help="Use only this phase of a run.")
@click.option(
    "--speed",
    type=click.FloatRange(min=0, min_open=True),
    help="Playback speed as a multiple of real time.  [unlimited]",
)
@read_limits
def command(
    path: Path | ObjectUrl,
    interval: float | None,
    begin: "float | TimeOfDay | None",
    end: "float | TimeOfDay | None",
    node: str,
    phase: str | None,
    speed: float | None,
    max_series: int,
    **options: Any,
) -> None:
    options = {name: value for name, value in options.items() if value is not None}
    settings = LineSettings(**options)
    with local_copies((path,), begin, end) as (local,):
        files = files_by_node(local, phase, begin, end)
        _replay(local, _recording(local, node, files), settings, interval, speed, max_series)


def _replay(
    path: Path,
    recording: NodeFiles,
    settings: LineSettings,
    interval: float | None,
    speed: float | None,
    max_series: int,
) -> None:
    """Print the rows of a recording. Raises CasstatError and click.UsageError."""
    from cli.line.line_program import view_of
    from cli.line.row_printer import OutputOptions, print_rows, view_for_sample

    files = recording.files
    begin_s, end_s = recorded_bounds(recording.begin, recording.end, files)
    entries = _within(_entries(files, max_series), begin_s, end_s)
    first = next(entries, None)
    if first is None:
        limited = recording.begin is not None or recording.end is not None
        raise CasstatError(f"{path}: no data{' in this time range' if limited else ''}")
    check_names(settings.keyspace, settings.table, files, max_series)
    if interval is not None and interval < first.head.interval_s:
        raise click.BadParameter(
            f"must be at least the recording's interval, {first.head.interval_s:g} s", param_hint="--interval"
        )
    view = view_of(settings, first.head.way)
    samples = _Samples(first, entries, interval, speed)
    output = OutputOptions(settings.output, settings.count_option, header=not settings.no_header)
    print_rows(samples, lambda sample: view_for_sample(view, samples.devices, sample), samples.between_s, output)


class _Samples:
    """Yields the samples of the entries; raises CasstatError if there are none.

    between_s  the interval between samples.
    devices    the disk and the network interface of the latest sample's node, as in its header.

    `speed` is a multiple of the original pace; None for no delay.
    """

    def __init__(
        self, first: "Entry", following: Iterable["Entry"], interval_s: float | None, speed: float | None
    ) -> None:
        self._first, self._following = first, following
        self._interval_s = interval_s
        self._speed = speed
        # The time from the first entry to the last one that has been read.
        self._length_s = 0.0
        self.between_s = interval_s or first.head.interval_s
        self.devices = first.head.disk, first.head.interface

    def __iter__(self) -> Iterator["Sample"]:
        from collector.node.node_sampler import SampleStream
        from collector.recording.reader import at_interval

        has_samples = False
        for _, session in groupby(self._measured(), key=lambda entry: entry.head.session):
            kept = iter(at_interval(session, self._interval_s or 0.0))
            first = next(kept, None)
            if first is not None:
                head = first.head
                stream = SampleStream(head.catalogue, head.sources, paced=head.paced, met=head.met)
                for sample in stream.samples(self._paced(chain([first], kept))):
                    has_samples = True
                    yield sample
        if not has_samples:
            raise CasstatError(_too_short_message(self._length_s, self.between_s))

    def _measured(self) -> Iterator["Entry"]:
        for entry in chain([self._first], self._following):
            self._length_s = entry.snapshot.tick.time_s - self._first.snapshot.tick.time_s
            yield entry

    def _paced(self, entries: Iterable["Entry"]) -> Iterator["Snapshot"]:
        last_s: float | None = None
        for entry in entries:
            time_s = entry.snapshot.tick.time_s
            if self._speed is not None and last_s is not None:
                time.sleep(max(0.0, time_s - last_s) / self._speed)
            last_s = time_s
            self.devices = entry.head.disk, entry.head.interface
            yield entry.snapshot


def _too_short_message(length_s: float, interval_s: float) -> str:
    covered, hint = f"the replayed data covers {length_s:g} s", "(hint: choose a shorter --interval or a longer range)"
    if length_s < interval_s:
        return f"{covered}, less than one interval of {interval_s:g} s {hint}"
    length = f"{interval_s:g} s"
    return f"{covered}, but no complete interval of {length}: intervals end at multiples of {length} {hint}"


def _entries(files: list[Path], max_series: int) -> Iterator["Entry"]:
    """Yield the recorded entries; print a note for each defect in the recording. Raises CasstatError."""
    from collector.recording.header import SeriesLimit
    from collector.recording.journal_files import is_being_written
    from collector.recording.reader import Entry, TickOrder, read
    from collector.recording.writer import SUFFIX

    sequence, limit = TickOrder(), SeriesLimit(max_series, str(files[0].parent) if files else "")
    for file in files:
        with file_errors(file, CasstatError):
            for record in sequence.filtered(read(file, limit)):
                if isinstance(record, Entry):
                    yield record
                else:
                    note(finding_text(file, record))
    for footer, lost in sequence.missing_ends():
        note(finding_text(files[0].with_name(f"{footer.file}{SUFFIX}"), lost))
    if sequence.integrity().unfinished and not is_being_written(file.parent):
        note(f"{file}: {recording_arguments.unfinished_text(file.parent)}")


def _within(entries: Iterable["Entry"], begin_s: float, end_s: float) -> Iterator["Entry"]:
    return (entry for entry in entries if begin_s <= entry.snapshot.tick.time_s <= end_s)


def _recording(path: Path, node: str, recordings: Mapping[Path, NodeFiles]) -> NodeFiles:
    """Return the recording of `node`, or the only recording if `node` is "". Raises CasstatError."""
    named = {folder: files for folder, files in recordings.items() if not node or folder.name == folder_name(node)}
    names = one_line(", ".join(folder.name for folder in recordings))
    if len(named) > 1:
        raise CasstatError(f"{path}: contains recordings of several nodes (hint: use --node with one of {names})")
    if recordings and not named:
        raise CasstatError(f"{path}: no recording of '{one_line(node)}' (hint: choose from {names})")
    return next(iter(named.values()), NodeFiles([], None, None))


command.params += line.copied_options(OF_THE_LINE)

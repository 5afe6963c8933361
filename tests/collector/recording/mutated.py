"""Random changes to recordings, and the check that the result is either right or reported as damaged."""

import random
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from collector.merge.grid import Grid, NodeInterval
from collector.merge.merge_job import Job, NodeRun
from collector.merge.recordings import recordings, sessions
from collector.model.snapshot import Rate, Snapshot
from collector.recording.frames import MAGIC, Damage, Footer
from collector.recording.journal_files import info, journal_files
from collector.recording.reader import Entry, Integrity, TickOrder, read
from collector.recording.writer import SUFFIX, files_of
from tests.collector.merge.reference_merge import merge, reference_merge

READS = ("cassandra_client_requests_total", "Read")
Mutation = Callable[[random.Random, Path], None]


def _bytes(chance: random.Random, folder: Path) -> tuple[Path, bytearray]:
    file = chance.choice(files_of(folder))
    return file, bytearray(file.read_bytes())


def _frames(chance: random.Random, folder: Path) -> tuple[Path, list[bytes]]:
    file, content = _bytes(chance, folder)
    return file, [MAGIC + frame for frame in bytes(content).split(MAGIC)[1:]]


def flip_bits(chance: random.Random, folder: Path) -> None:
    """Flip up to eight bits of a file."""
    file, content = _bytes(chance, folder)
    for _ in range(chance.randint(1, 8) if content else 0):
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    file.write_bytes(content)


def overwrite(chance: random.Random, folder: Path) -> None:
    """Overwrite up to 200 bytes of a file."""
    file, content = _bytes(chance, folder)
    begin = chance.randrange(len(content) + 1)
    size = min(chance.randint(1, 200), len(content) - begin)
    content[begin : begin + size] = chance.choice([bytes(size), chance.randbytes(size)])
    file.write_bytes(content)


def truncate(chance: random.Random, folder: Path) -> None:
    """Cut off the end of a file."""
    file, content = _bytes(chance, folder)
    file.write_bytes(content[: chance.randrange(len(content) + 1)])


def insert(chance: random.Random, folder: Path) -> None:
    """Insert random bytes, or a frame from any file, at a random position."""
    file, content = _bytes(chance, folder)
    _, frames = _frames(chance, folder)
    at = chance.randrange(len(content) + 1)
    content[at:at] = chance.choice([chance.randbytes(chance.randint(1, 2000)), *frames[:3]])
    file.write_bytes(content)


def duplicate_frame(chance: random.Random, folder: Path) -> None:
    """Insert a copy of one of a file's frames before a random frame or at the end."""
    file, frames = _frames(chance, folder)
    if frames:
        frames.insert(chance.randrange(len(frames) + 1), chance.choice(frames))
    file.write_bytes(b"".join(frames))


def swap_frames(chance: random.Random, folder: Path) -> None:
    """Swap two of a file's frames."""
    file, frames = _frames(chance, folder)
    if len(frames) > 1:
        first, second = chance.sample(range(len(frames)), 2)
        frames[first], frames[second] = frames[second], frames[first]
    file.write_bytes(b"".join(frames))


def drop_frame(chance: random.Random, folder: Path) -> None:
    """Remove one of a file's frames."""
    file, frames = _frames(chance, folder)
    if frames:
        del frames[chance.randrange(len(frames))]
    file.write_bytes(b"".join(frames))


def _new_name(chance: random.Random, folder: Path) -> Path:
    return folder / f"{chance.choice(['0', '2026', 'z'])}{chance.randrange(1 << 30)}{SUFFIX}"


def copy(chance: random.Random, folder: Path) -> None:
    """Copy a file under another name."""
    shutil.copy(chance.choice(files_of(folder)), _new_name(chance, folder))


def copy_part(chance: random.Random, folder: Path) -> None:
    """Copy the beginning, the end or the middle of a file under another name."""
    _, content = _bytes(chance, folder)
    begin, end = sorted(chance.randrange(len(content) + 1) for _ in range(2))
    part = chance.choice([content[:end], content[begin:], content[begin:end]])
    _new_name(chance, folder).write_bytes(part)


def rename(chance: random.Random, folder: Path) -> None:
    chance.choice(files_of(folder)).rename(_new_name(chance, folder))


def concatenate(chance: random.Random, folder: Path) -> None:
    """Append one file to another, and keep or remove the appended file."""
    files = files_of(folder)
    if len(files) > 1:
        target, appended = chance.sample(files, 2)
        target.write_bytes(target.read_bytes() + appended.read_bytes())
        if chance.randrange(2):
            appended.unlink()


MUTATIONS: dict[str, Mutation] = {
    mutation.__name__: mutation
    for mutation in (
        flip_bits,
        overwrite,
        truncate,
        insert,
        duplicate_frame,
        swap_frames,
        drop_frame,
        copy,
        copy_part,
        rename,
        concatenate,
    )
}


@dataclass(frozen=True)
class Truth:
    """The original recording: its ticks by session and number, its number of reads, and its integrity."""

    ticks: dict[tuple[str, int], Snapshot]
    reads: float
    integrity: Integrity


@dataclass(frozen=True)
class Verdict:
    """The result of checking a mutated recording.

    wrong        the problems found; "" if the data is right or the damage is reported correctly.
    is_right     whether no ticks are missing and the number of reads is right.
    is_reported  whether the integrity differs from that of the original recording.
    """

    wrong: str
    is_right: bool
    is_reported: bool


def _intervals(run: NodeRun) -> dict[int, NodeInterval]:
    return dict(run.intervals)


def reads_of(folder: Path, *, reference: bool = False) -> tuple[float, Integrity]:
    """Return the number of reads and the integrity that a merge reports."""
    runs, _ = recordings(sessions([folder])[0])
    job = Job(Grid(5.0), {}, frozenset([READS]), _intervals)
    merged = reference_merge(runs, job) if reference else merge(runs, job)
    values = [interval.sample.values.get(READS) for node in merged.nodes for interval in node.product.values()]
    integrity = sum((node.integrity for node in merged.nodes), Integrity())
    return sum(value.increase for value in values if isinstance(value, Rate)), integrity


class _Reading:
    """Reads a directory with the functions that all commands use, and compares each tick with the original."""

    def __init__(self, truth: Truth, folder: Path) -> None:
        self.problems: list[str] = []
        self.ticks = 0
        self.reads = 0.0
        self._truth = truth
        self._order, damaged = TickOrder(), 0
        # Keyed by session: the next expected tick number, the first tick number, and the read counter's last value.
        self._last: dict[str, int] = {}
        self._first: dict[str, int] = {}
        self._counts: dict[str, float] = {}
        for file in journal_files(folder):
            records = list(read(file))
            damaged += sum(isinstance(record, Damage) for record in records) + (not file.stat().st_size)
            for entry in self._order.filtered(records):
                if isinstance(entry, Entry):
                    self._take(entry)
            for record in records:
                if isinstance(record, Footer) and record.next >= self._last.get(record.session, 0):
                    self._last[record.session] = record.next
                    self._begin(record.session, record.first)
        self.integrity = self._order.integrity(damaged)

    def _take(self, entry: Entry) -> None:
        session = entry.head.session
        if self._truth.ticks.get((session, entry.number)) != entry.snapshot:
            self.problems.append(f"a tick that was not recorded: {session} {entry.number}")
        self.ticks += 1
        self._last[session] = max(self._last.get(session, 0), entry.number + 1)
        self._begin(session, entry.start.first if entry.start else 0)
        for scrape in entry.snapshot.scrapes:
            count = scrape.values.get(READS)
            if isinstance(count, int):
                self.reads += count - self._counts.get(session, count)
                self._counts[session] = count

    def _begin(self, session: str, first: int) -> None:
        self._first[session] = min(self._first.get(session, first), first)

    def unstated(self) -> int:
        """Return the number of lost ticks that no record reveals: those at the beginning or end of a session."""
        missing = 0
        for session in {session for session, _ in self._truth.ticks}:
            count = sum(tick_session == session for tick_session, _ in self._truth.ticks)
            missing += self._first.get(session, 0) + count - self._last.get(session, 0)
        return missing


def truth_of(folder: Path) -> Truth:
    """Return the ticks, reads and integrity of a recording that has not been mutated."""
    entries = [record for file in journal_files(folder) for record in read(file) if isinstance(record, Entry)]
    ticks = {(entry.head.session, entry.number): entry.snapshot for entry in entries}
    return Truth(ticks, reads_of(folder)[0], info([folder]).integrity)


def verdict(truth: Truth, folder: Path, *, by_all: bool) -> Verdict:
    """Check whether a directory's contents are right, or reported as damaged with the correct number of lost ticks.

    If `by_all` is set, also check whether `casstat journal check` and both merges report the same result.
    """
    reading = _Reading(truth, folder)
    problems, integrity, unstated = list(reading.problems), reading.integrity, reading.unstated()
    missing = len(truth.ticks) - reading.ticks
    is_reported = integrity != truth.integrity
    if not integrity.lost <= missing <= integrity.lost + unstated:
        problems.append(f"{missing} ticks are missing, {integrity.lost} reported, {unstated} at unknown ends")
    if unstated and integrity == Integrity():
        problems.append("a missing end is not reported")
    is_right = missing == 0 and abs(reading.reads - truth.reads) < 0.5
    if reading.reads > truth.reads + 0.5 or not (is_right or is_reported or unstated):
        problems.append(f"{reading.ticks} ticks and {reading.reads:.0f} reads, and nothing is reported")
    if by_all:
        problems += _by_all(folder, reading)
    return Verdict("; ".join(problems), is_right, is_reported)


def _by_all(folder: Path, reading: _Reading) -> list[str]:
    checked = info([folder])
    problems = []
    if (checked.ticks, checked.integrity) != (reading.ticks, reading.integrity):
        problems.append(f"check reports {checked.ticks} ticks, {checked.integrity}")
    if reading.ticks:
        columnar, reference = reads_of(folder), reads_of(folder, reference=True)
        # A merge reports a file without readable ticks only in a note, and does not count it in its `Integrity`.
        of_merge = reading.integrity if sessions([folder])[1] else columnar[1]
        if columnar != reference or (of_merge.lost, of_merge.repeated) != (
            reading.integrity.lost,
            reading.integrity.repeated,
        ):
            problems.append(f"the merges report {columnar} and {reference}")
        if abs(columnar[0] - reading.reads) > 0.5:
            problems.append(f"the files contain {reading.reads} reads, but a merge counts {columnar[0]}")
    return problems


def mutate(chance: random.Random, folder: Path, kinds: Sequence[str] = tuple(MUTATIONS)) -> list[str]:
    """Apply one or two random changes to a recording, and return their kinds."""
    chosen = chance.choices(kinds, k=chance.choice([1, 1, 2]))
    for kind in chosen:
        MUTATIONS[kind](chance, folder)
    return chosen

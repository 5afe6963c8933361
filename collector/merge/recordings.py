"""Finds the sessions in recorded files, and assigns them to nodes.

Of complete files, only the beginning and the end are decompressed. Duplicate names, renamed nodes and overlapping
recordings are resolved.
"""

import sys
from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import chain, count
from pathlib import Path

from collector.merge import aggregation
from collector.printable import count_text
from collector.recording import frames
from collector.recording.codec import MALFORMED, texts_of, tick_of
from collector.recording.header import Header, SeriesLimit, header_of
from collector.recording.journal_files import journal_files
from collector.recording.reader import Entry, read, read_lines

# Maximum number of frames to try from the end of a file before reading the whole file.
MAX_FRAMES_TRIED = 64
# Reading and decompressing release the interpreter lock.
THREADS = 2
# The key of the node's name in a record.
NODE = b'"n":'
# An index after those of all groups.
NO_GROUP = sys.maxsize
# Maximum number of sessions per file. A recorder writes only one, but users may concatenate files.
MAX_SESSIONS = 100


@dataclass(frozen=True)
class Session:
    """One node's ticks from one run of a recorder.

    begin_s, end_s  the time range on the recorder's clock; ticks before a clock step may lie outside.
    processes       the node's processes at the beginning and end of each file.
    size_bytes      the size of the files.
    """

    node: str
    head: Header
    files: tuple[Path, ...]
    begin_s: float
    end_s: float
    processes: frozenset[str] = frozenset()
    size_bytes: int = 0

    @property
    def folder(self) -> Path:
        return self.files[0].parent

    def overlaps(self, other: "Session") -> bool:
        """Return whether the sessions overlap in time, or are copies of each other."""
        # Copies are recognised by identifier and start time, because a session with one tick has an empty time range.
        if self.head.session and (self.head.session, self.begin_s) == (other.head.session, other.begin_s):
            return True
        return self.begin_s < other.end_s and other.begin_s < self.end_s

    def read(self, limit: SeriesLimit) -> Iterator[Entry | frames.Damage | frames.Footer]:
        """Yield the session's records, and any damage. Raises OSError and TooManySeriesError."""
        for path in self.files:
            for record in read(path, limit):
                if isinstance(record, frames.Damage) or session_of(record) == self.head.session:
                    yield record


def session_of(record: Entry | frames.Footer) -> str:
    return record.head.session if isinstance(record, Entry) else record.session


@dataclass(frozen=True)
class _End:
    """The first or last tick of a session in a file."""

    head: Header
    node: str
    time_s: float


def sessions(paths: Iterable[Path]) -> tuple[list[Session], list[str]]:
    """Return the sessions in all files, and notes about unreadable or omitted sessions and files without sessions.

    If a file ends with its footer, it contains only one session, so only its first and last frames are
    decompressed. Raises OSError.
    """
    files_by_session: dict[tuple[Path, str], list[tuple[Path, _End, _End]]] = {}
    notes: list[str] = []
    files = list({file.resolve(): file for path in paths for file in journal_files(path)}.values())
    with ThreadPoolExecutor(THREADS) as threads:
        ends_by_file = list(threads.map(_file_ends, files))
    for file, (ends, footers) in zip(files, ends_by_file, strict=True):
        readable = {first.head.session for first, _ in ends}
        lost = sum(footer.next - footer.first for footer in footers if footer.session not in readable)
        if lost:
            notes.append(f"{file}: unreadable session: {count_text(lost, 'tick')} lost")
        elif not ends:
            notes.append(f"{file}: no recording found")
        if len(ends) > MAX_SESSIONS:
            notes.append(f"{file}: more than {MAX_SESSIONS} sessions; only the first {MAX_SESSIONS} are used")
        for first, last in ends[:MAX_SESSIONS]:
            files_by_session.setdefault((file.parent, first.head.session), []).append((file, first, last))
    return [_session(files) for files in files_by_session.values()], notes


def _session(files: Sequence[tuple[Path, _End, _End]]) -> Session:
    """Return a session; `files` contains each of its files with the first and the last tick. Raises OSError."""
    _, _, last = files[-1]
    processes = {end.head.process for _, *ends in files for end in ends if end.head.process}
    times = [end.time_s for _, *ends in files for end in ends]
    paths = tuple(file for file, *_ in files)
    size_bytes = sum(path.stat().st_size for path in paths)
    return Session(last.node, last.head, paths, min(times), max(times), frozenset(processes), size_bytes)


def _file_ends(file: Path) -> tuple[list[tuple[_End, _End]], list[frames.Footer]]:
    """Return the first and last tick of each session in a file, and the file's footers. Raises OSError."""
    footer = frames.last_footer(file)
    line = None if footer is None else next(read_lines(file), None)
    first = _tick_of_full_record(line) if isinstance(line, bytes) else None
    if footer is None or first is None:
        return _all_ends(read_lines(file))
    data = file.read_bytes()
    frame_offset = footer.offset
    for _ in range(MAX_FRAMES_TRIED):
        frame_offset = data.rfind(frames.MAGIC, 0, frame_offset)
        if frame_offset <= 0:
            break
        frame = data[frame_offset : footer.offset]
        if (last := _last_tick(frame)) is not None:
            return [(first, last)], [footer]
        # Frames are independent of each other; bytes that only look like the beginning of a frame yield nothing.
        ends, _ = _all_ends(frames.Frames().feed(frame))
        if ends:
            return [(first, ends[-1][1])], [footer]
    ends, _ = _all_ends(read_lines(file))
    return [(first, ends[-1][1] if ends else first)], [footer]


def _last_tick(frame: bytes) -> _End | None:
    """Return the last tick of a frame; None if the frame is damaged, or if the header or the node's name changes in it.

    Only the checksums of the first and the last line are verified; damage to other lines does not change their times.
    """
    text = frames.frame_text(frame)
    if text is None or b'\n{"head"' in text:
        return None
    *lines, rest = text.split(b"\n")
    if rest or text.count(NODE) > lines[0].count(NODE):
        return None
    try:
        end = _tick_of_full_record(frames.checked(lines[0]))
        return None if end is None else replace(end, time_s=tick_of(frames.parsed(frames.checked(lines[-1]))).time_s)
    except MALFORMED:
        return None


def _tick_of_full_record(text: bytes) -> _End | None:
    """Return the tick of a full record; None if the record is malformed or not a full one."""
    try:
        content = frames.parsed(text)
        (node,) = texts_of([content.get("n", "")])
        return _End(header_of(content["head"]), node, tick_of(content).time_s)
    except MALFORMED:
        return None


def _all_ends(lines: Iterable[bytes | frames.Damage]) -> tuple[list[tuple[_End, _End]], list[frames.Footer]]:
    """Return the first and last tick of each session, ordered by first tick, and all footers.

    Ticks are not fully decoded, because only their sessions, nodes and times are needed.
    """
    begins: dict[str, _End] = {}
    lasts: dict[str, tuple[Header, str, bytes]] = {}
    footers: list[frames.Footer] = []
    head: Header | None = None
    node = ""
    for text in lines:
        if isinstance(text, frames.Damage):
            # The records that follow may be deltas from a lost record, so skip them up to the next full record.
            head = None
            continue
        try:
            if text.startswith((b'{"head"', b'{"end"')) or NODE in text:
                content = frames.parsed(text)
                if "end" in content:
                    footers.append(frames.footer_of(content["end"], 0))
                head = header_of(content["head"]) if "head" in content else None if "end" in content else head
                (node,) = texts_of([content.get("n", node)])
                if head is not None and head.session not in begins:
                    begins[head.session] = _End(head, node, tick_of(content).time_s)
        except MALFORMED:
            head = None
        if head is not None and head.session in begins:
            lasts[head.session] = head, node, text
    return [(first, _end(lasts[session], first)) for session, first in begins.items() if session in lasts], footers


def _end(last: tuple[Header, str, bytes], first: _End) -> _End:
    head, node, text = last
    try:
        return _End(head, node, tick_of(frames.parsed(text)).time_s)
    except MALFORMED:
        return _End(head, node, first.time_s)


@dataclass(frozen=True)
class Recording:
    """One node's sessions in chronological order, without overlaps.

    folders  the real paths of the directories of all of its sessions, including those that overlap.
    """

    node: str
    sessions: tuple[Session, ...]
    folders: frozenset[Path] = frozenset()


def recordings(sessions: Sequence[Session]) -> tuple[list[Recording], list[str]]:
    """Return the recordings sorted by node, and notes about conflicts.

    A node is identified by its process: sessions of the same process under two names belong to one node, which gets the
    latest name. If two sessions of a node overlap, the longer one is used. Two processes that use the same name at the
    same time are two different nodes.
    """
    notes: list[str] = []
    groups = _Groups()
    for session in sorted(sessions, key=_start):
        groups.add(session)
    names = _Names(notes)
    named: dict[str, Recording] = {}
    for group in groups.members:
        name = names.name_of(group)
        folders = frozenset(session.folder.resolve() for session in group)
        named[name] = Recording(name, tuple(_without_overlaps(group, notes)), folders)
    return [named[name] for name in sorted(named)], notes


def _start(session: Session) -> tuple[float, bool, Path]:
    # A session with one tick overlaps no session that starts at the same time, so it precedes those with more ticks.
    return session.begin_s, session.begin_s < session.end_s, session.folder


class _Groups:
    """Groups sessions by node. Sessions must be added in the order of `_start`.

    A session joins the oldest group that contains its process or its name. A matching name is not enough
    if both processes are known, differ, and ran at the same time.
    """

    def __init__(self) -> None:
        self.members: list[list[Session]] = []
        self._by_process: dict[str, int] = {}
        self._by_name: dict[str, _SameName] = {}

    def add(self, session: Session) -> None:
        by_name = self._by_name.setdefault(session.node, _SameName())
        candidates = [self._by_process[process] for process in session.processes if process in self._by_process]
        index = min(*candidates, by_name.group_for(session), len(self.members))
        if index == len(self.members):
            self.members.append([])
        self.members[index].append(session)
        by_name.add(session, index)
        for process in session.processes:
            self._by_process[process] = min(index, self._by_process.get(process, index))


class _SameName:
    """The groups that have sessions with a given name. Sessions must be added in the order of `_start`."""

    def __init__(self) -> None:
        self._oldest = NO_GROUP
        # The oldest group that accepts any later session, regardless of its process.
        self._oldest_free = NO_GROUP
        # A heap with the (end time, group) of each session that has a known process and may overlap a later session.
        self._ends: list[tuple[float, int]] = []

    def group_for(self, session: Session) -> int:
        """Return the index of the oldest group that accepts the session; NO_GROUP if none does."""
        while self._ends and self._ends[0][0] <= session.begin_s:
            self._oldest_free = min(heappop(self._ends)[1], self._oldest_free)
        # A session without a known process is accepted by every group.
        return self._oldest_free if session.processes else self._oldest

    def add(self, session: Session, index: int) -> None:
        """Add a session that belongs to the group at `index`."""
        self._oldest = min(index, self._oldest)
        if session.processes:
            heappush(self._ends, (session.end_s, index))
        else:
            self._oldest_free = min(index, self._oldest_free)


class _Names:
    def __init__(self, notes: list[str]) -> None:
        self._notes = notes
        self._used = {aggregation.NAME}
        self._numbered: dict[str, Iterator[str]] = {}

    def name_of(self, group: Sequence[Session]) -> str:
        """Return an unused name for a group; add a note if its node was renamed or its name is already in use."""
        name = group[-1].node
        others = sorted({session.node for session in group} - {name})
        if others:
            self._notes.append(f"{name} was also recorded as {', '.join(others)} (same process)")
        numbered = self._numbered.setdefault(name, (f"{name}~{number}" for number in count(2)))
        unique = next(other for other in chain([name], numbered) if other not in self._used)
        self._used.add(unique)
        if unique != name:
            why = f"two nodes are named {name} at the same time: the one"
            if name == aggregation.NAME:
                why = f"{name} is the name of the total over all nodes: the node"
            self._notes.append(f"{why} in {group[-1].folder} is shown as {unique}")
        return unique


def _without_overlaps(group: Sequence[Session], notes: list[str]) -> list[Session]:
    """Return the sessions in order of start time, without those that overlap a longer one.

    Adds a note for each session that is left out.
    """
    chosen: list[Session] = []
    copies: dict[tuple[str, float], Session] = {}
    # The start time and index of each chosen session with more than one tick, in order of start time. These sessions do
    # not overlap each other, and each is at least as long as the next candidate. So only the sessions that start just
    # before and just after the candidate can overlap it.
    ordered: list[tuple[float, int]] = []
    for session in sorted(group, key=lambda session: session.begin_s - session.end_s):
        insert_at = bisect_right(ordered, (session.begin_s, len(group)))
        indices = sorted(index for _, index in ordered[max(insert_at - 1, 0) : insert_at + 1])
        identity = session.head.session, session.begin_s
        neighbours = [chosen[index] for index in indices]
        copy = copies.get(identity) if session.head.session else None
        overlapping = copy or next((other for other in neighbours if session.overlaps(other)), None)
        if overlapping is None:
            copies[identity] = session
            if session.begin_s < session.end_s:
                insort(ordered, (session.begin_s, len(chosen)))
            chosen.append(session)
        else:
            notes.append(
                f"{session.folder}: ignored a session of {session.node} that overlaps one in {overlapping.folder}"
            )
    return sorted(chosen, key=lambda session: session.begin_s)

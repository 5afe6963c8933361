"""Which recordings there are of which node: the same node under two names, two recordings of one, and other traps."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from collector.cluster import aggregation
from collector.journal.footer import Footer, footer_of, last_footer
from collector.journal.frames import MAGIC, Damage, Frames
from collector.journal.header import Header, head_of
from collector.journal.read_limits import SeriesLimit
from collector.journal.reader import Entry, lines_of, read
from collector.journal.record_lines import parsed
from collector.journal.segments import journal_files
from collector.journal.validation import MALFORMED, names, tick_of

# So many beginnings of a frame are looked at from the end of a file, before all of it is read.
TRIES = 64
# A recorder writes one into a file; somebody may have put files together.
MOST_SESSIONS = 100


@dataclass(frozen=True)
class Session:
    """One run of a recorder: what it wrote about one node, without a break.

    begin_s, end_s  between which its ticks are, by the clock of the machine that recorded; where that was set, some
                    may be elsewhere.
    processes       of the node, by whatever name it is called, as they were at the beginning and at the end.
    """

    node: str
    head: Header
    files: tuple[Path, ...]
    begin_s: float
    end_s: float
    processes: frozenset[str] = frozenset()

    @property
    def folder(self) -> Path:
        """Where it is."""
        return self.files[0].parent

    def overlaps(self, other: "Session") -> bool:
        """Return whether there are moments of which both tell."""
        # A copy does so always; one of a single tick has no length.
        if self.head.session and (self.head.session, self.begin_s) == (other.head.session, other.begin_s):
            return True
        return self.begin_s < other.end_s and other.begin_s < self.end_s

    def read(self, limit: SeriesLimit) -> Iterator[Entry | Damage | Footer]:
        """Yield what was recorded, and what is damaged. Raises OSError, TooManySeriesError."""
        for path in self.files:
            for found in read(path, limit):
                if isinstance(found, Damage) or session_of(found) == self.head.session:
                    yield found


def session_of(record: Entry | Footer) -> str:
    """Return which session a record is of."""
    return record.head.session if isinstance(record, Entry) else record.session


@dataclass(frozen=True)
class _End:
    """The first or the last tick of a file."""

    head: Header
    node: str
    time_s: float


@dataclass(frozen=True)
class Recording:
    """All that is to be counted of one node: sessions, one after the other."""

    node: str
    sessions: tuple[Session, ...]


def sessions(paths: Iterable[Path]) -> tuple[list[Session], list[str]]:
    """Return the sessions in all files there, and what is no recording, a line for each. Raises OSError.

    Of a file that ends with its footer only the ends are read, since all of it belongs to one session.
    """
    found: dict[tuple[Path, str], list[tuple[Path, _End, _End]]] = {}
    notes: list[str] = []
    for file in {file.resolve(): file for path in paths for file in journal_files(path)}.values():
        ends, footers = _ends(file)
        readable = {first.head.session for first, _ in ends}
        lost = sum(footer.next - footer.first for footer in footers if footer.session not in readable)
        if lost:
            notes.append(f"{file}: no tick of its session can be read: {lost} ticks are lost")
        elif not ends:
            notes.append(f"{file}: nothing is recorded there")
        if len(ends) > MOST_SESSIONS:
            notes.append(f"{file}: more than {MOST_SESSIONS} sessions in one file: the others are left out")
        for first, last in ends[:MOST_SESSIONS]:
            found.setdefault((file.parent, first.head.session), []).append((file, first, last))
    return [_session(files) for files in found.values()], notes


def _session(files: Sequence[tuple[Path, _End, _End]]) -> Session:
    _, _, last = files[-1]
    processes = {end.head.process for _, *ends in files for end in ends if end.head.process}
    times = [end.time_s for _, *ends in files for end in ends]
    paths = tuple(file for file, *_ in files)
    return Session(last.node, last.head, paths, min(times), max(times), frozenset(processes))


def _ends(file: Path) -> tuple[list[tuple[_End, _End]], list[Footer]]:
    """Return the first and the last tick of each session in a file, and the footers in it. Raises OSError."""
    footer = last_footer(file)
    if footer is None:
        return _all_ends(lines_of(file))
    entry = next((record for record in read(file) if isinstance(record, Entry)), None)
    if entry is None:
        return [], [footer]
    first = _End(entry.head, entry.snapshot.node, entry.snapshot.tick.time_s)
    data = file.read_bytes()[: footer.offset]
    frame_offset = len(data)
    for _ in range(TRIES):
        frame_offset = data.rfind(MAGIC, 0, frame_offset)
        if frame_offset <= 0:
            break
        # A frame can be read alone; what only looks like the beginning of one holds nothing.
        ends, _ = _all_ends(Frames().feed(data[frame_offset:]))
        if ends:
            return [(first, ends[-1][1])], [footer]
    ends, _ = _all_ends(lines_of(file))
    return [(first, ends[-1][1] if ends else first)], [footer]


def _all_ends(lines: Iterable[bytes | Damage]) -> tuple[list[tuple[_End, _End]], list[Footer]]:
    """Return the first and the last tick of each session, in the order of their first ticks, and all footers.

    Ticks are not decoded, since only their sessions and times are needed.
    """
    begins: dict[str, _End] = {}
    lasts: dict[str, tuple[Header, str, bytes]] = {}
    footers: list[Footer] = []
    head: Header | None = None
    node = ""
    for text in lines:
        if isinstance(text, Damage):
            # The next lines are differences to a line that is not known.
            head = None
            continue
        try:
            if text.startswith((b'{"head"', b'{"end"')) or b'"n":' in text:
                content = parsed(text)
                if "end" in content:
                    footers.append(footer_of(content["end"], 0))
                head = head_of(content["head"]) if "head" in content else None if "end" in content else head
                (node,) = names([content.get("n", node)])
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
        return _End(head, node, tick_of(parsed(text)).time_s)
    except MALFORMED:
        return _End(head, node, first.time_s)


def recordings(found: Sequence[Session]) -> tuple[list[Recording], list[str]]:
    """Return what is to be counted of which node, in the order of their names, and what is to be known of it.

    A node is told by its process: what was recorded of one process under two names is of one node, called as it was
    last. Of two sessions of one node that overlap, the longer counts. Two processes that have one name at one time
    are two nodes.
    """
    notes: list[str] = []
    groups: list[list[Session]] = []
    for session in sorted(found, key=lambda each: (each.begin_s, each.folder)):
        group = next((group for group in groups if any(_same(session, other) for other in group)), None)
        if group is None:
            groups.append([session])
        else:
            group.append(session)
    named: dict[str, Recording] = {}
    for group in groups:
        name = _name(group, named, notes)
        named[name] = Recording(name, tuple(_one_at_a_time(group, notes)))
    return [named[name] for name in sorted(named)], notes


def _same(one: Session, other: Session) -> bool:
    if one.processes & other.processes:
        return True
    # Its process is another after a restart, and not known of every node.
    return one.node == other.node and not (one.processes and other.processes and one.overlaps(other))


def _name(group: Sequence[Session], named: Iterable[str], notes: list[str]) -> str:
    name = group[-1].node
    others = sorted({session.node for session in group} - {name})
    if others:
        notes.append(f"{name} was also recorded as {', '.join(others)}: it is the same process")
    taken = {aggregation.NAME, *named}
    if name not in taken:
        return name
    free = next(f"{name}~{number}" for number in range(2, len(taken) + 3) if f"{name}~{number}" not in taken)
    if name == aggregation.NAME:
        notes.append(f"{name} is what all nodes together are called: the node in {group[-1].folder} is {free} here")
        return free
    notes.append(f"two nodes are called {name} at the same time: the one in {group[-1].folder} is {free} here")
    return free


def _one_at_a_time(group: Sequence[Session], notes: list[str]) -> list[Session]:
    chosen: list[Session] = []
    for session in sorted(group, key=lambda each: each.begin_s - each.end_s):
        rival = next((other for other in chosen if session.overlaps(other)), None)
        if rival is None:
            chosen.append(session)
        else:
            notes.append(f"{session.folder}: {session.node} is recorded in {rival.folder} too: only that one counts")
    return sorted(chosen, key=lambda each: each.begin_s)

"""The ticks to ship, from the journal or, when the sink is not behind, from memory; their gaps; and checkpoints.

A checkpoint is the last tick that a sink's store has received, in a small file per sink, replaced atomically.
"""

import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from math import ceil
from pathlib import Path
from typing import Any, Protocol
from zlib import crc32

from collector.file_access import replace_file
from collector.merge.aggregation import placement_of
from collector.model.snapshot import Identity
from collector.node.node_sampler import SampleStream
from collector.printable import count_text, local_time, one_line
from collector.recording.frames import Damage
from collector.recording.header import Header, SeriesLimit, look_back_s
from collector.recording.reader import Entry, Finding, LostTicks, Removed, RepeatedTicks, TickOrder, read
from collector.recording.writer import Position
from exporters.rate_limited_logger import RateLimitedLogger
from exporters.recent_ticks import RecentTick, RecentTicks
from exporters.sinks.sink import LiveFamilies, NodeTick

MAX_BYTES = 1 << 16
LAST_S = 1e11
ODD = re.compile(r"[^A-Za-z0-9.-]+")


class CheckpointError(Exception):
    """A checkpoint file is malformed; the message is one line."""


@dataclass(frozen=True)
class Checkpoint:
    """The last tick that the store has received.

    time_s, session  identify the tick.
    position         where to resume reading, far enough back for correct rates in the following ticks.
    identity         the node's identity at that tick.
    sink_state       the state of the sink after that tick; empty for most sinks.
    """

    time_s: float
    session: str
    position: Position
    identity: Identity
    sink_state: Mapping[str, Any] = field(default_factory=dict)


def checkpoint_path(folder: Path, sink: str) -> Path:
    """Return the path of a sink's checkpoint file in a directory."""
    return folder / f"{file_name(sink)}.checkpoint.json"


def upload_checkpoint(state: Path, store: str, node: str) -> Path:
    """Return the path of the checkpoint of a node's uploads to a store."""
    return state / f"{file_name(f'{store}/{node}')}.upload.json"


def file_name(sink: str) -> str:
    """Return a file name that is different for every sink."""
    return f"{ODD.sub('_', sink)[:100]}-{crc32(sink.encode()):08x}"


def load(path: Path) -> Checkpoint | None:
    """Return the checkpoint in a file, or None if the file does not exist. Raises OSError and CheckpointError."""
    try:
        with path.open("rb") as file:
            text = file.read(MAX_BYTES)
    except FileNotFoundError:
        return None
    try:
        checkpoint = _parsed(json.loads(text))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise CheckpointError(f"{path}: malformed checkpoint ({one_line(type(error).__name__)})") from None
    return checkpoint


def save(path: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint atomically. Raises OSError."""
    replace_file(path, json.dumps(asdict(checkpoint)).encode())


def _parsed(content: Any) -> Checkpoint:
    position, identity = Position(**content["position"]), Identity(**content["identity"])
    time_s, session = content["time_s"], content["session"]
    if not all(isinstance(text, str) for text in (session, position.file, *content["identity"].values())):
        raise TypeError("a name is not text")
    if type(time_s) not in (int, float) or not 0 <= time_s <= LAST_S:
        raise ValueError("time out of range")
    if type(content["position"]["offset"]) is not int or position.offset < 0 or "/" in position.file:
        raise ValueError("invalid position")
    sink_state = content.get("sink_state", {})
    if not isinstance(sink_state, dict):
        raise TypeError("the sink's state is not an object")
    return Checkpoint(time_s, session, position, identity, sink_state)


class Journal(Protocol):
    """A source of entries: a journal that may still be growing, or a finished recording."""

    def poll(self) -> Iterator[Entry | Finding | Removed]:
        """Yield the entries and findings since the last call. Raises OSError."""

    def position(self, entry: Entry) -> Position:
        """Return the position of the frame that contains `entry`, which must be the last entry yielded."""

    def close(self) -> None:
        """Close the files."""


@dataclass(frozen=True)
class ShipTick:
    """One tick to ship.

    content    what a sink encodes.
    position   the position of its frame.
    restart    the position from which reading can resume, with correct rates for the ticks after this one.
    """

    content: NodeTick
    position: Position
    restart: Position

    @property
    def time_s(self) -> float:
        return self.content.snapshot.tick.time_s

    @property
    def session(self) -> str:
        return self.content.header.session

    @property
    def checkpoint(self) -> Checkpoint:
        """The checkpoint to save once the store has the tick."""
        return Checkpoint(self.time_s, self.session, self.restart, self.content.identity)


class RecordingReader:
    """Reads the files of a finished recording once."""

    def __init__(self, files: Iterable[Path], limit: SeriesLimit | None = None) -> None:
        """Read `files`, which are sorted from oldest to newest; `limit` bounds the number of series."""
        self._files = deque(files)
        self._limit = limit
        self._sequence = TickOrder()
        self._path: Path | None = None

    def poll(self) -> Iterator[Entry | Finding | Removed]:
        """Yield the entries and findings in the files. Raises OSError and TooManySeriesError."""
        while self._files:
            self._path = self._files.popleft()
            yield from self._sequence.filtered(read(self._path, self._limit))

    def position(self, entry: Entry) -> Position:
        """Return the position of the frame that contains `entry`, which must be the last entry yielded."""
        return Position(self._path.name if self._path else "", entry.frame)

    def close(self) -> None:
        """Do nothing: each file is closed after it is read."""


class RestartPositions:
    """Determines where to resume reading after a tick: some frames before it, or at the start of its session."""

    def __init__(self) -> None:
        self._frames: deque[tuple[int, Position]] = deque()
        self._count = 0

    def add(self, position: Position, interval_s: float) -> Position:
        """Add a tick, given the position of its frame; return the position from which to resume reading after it."""
        # Count ticks, not seconds: the clock may be adjusted.
        needed = ceil(look_back_s(interval_s) / interval_s)
        if not self._frames or self._frames[-1][1] != position:
            self._frames.append((self._count, position))
        self._count += 1
        while len(self._frames) > 1 and self._count - self._frames[1][0] > needed:
            self._frames.popleft()
        return self._frames[0][1]


@dataclass(frozen=True)
class PreviousTick:
    """A tick, for comparison with the one after it.

    at_s  when it was read, on the monotonic clock; None if unknown.
    lost  number of ticks that its writer had failed to write by then; None if unknown.
    """

    time_s: float
    session: str
    at_s: float | None = None
    lost: int | None = None


class Gaps:
    """Compares each tick with the one before it, and counts and logs the ticks missing in between."""

    def __init__(self, log: RateLimitedLogger) -> None:
        """Report gaps and damage to `log`."""
        self._log = log
        self._previous: PreviousTick | None = None
        self._cause = ""
        self.lost = 0

    def restart(self, checkpoint: Checkpoint | None) -> None:
        """Start over: the next tick is compared with the checkpoint's tick, if there is one."""
        self._previous = None if checkpoint is None else PreviousTick(checkpoint.time_s, checkpoint.session)
        self._cause = ""

    def note(self, finding: Finding | Removed) -> None:
        """Record a finding that may explain a gap before the next tick."""
        if isinstance(finding, Removed):
            self._cause = self._cause or "journal files were removed before they were sent"
            return
        if isinstance(finding, LostTicks):
            # Nothing to record: `count` handles lost ticks when the next tick arrives.
            return
        if isinstance(finding, Damage):
            self._cause = f"the journal is damaged: byte {finding.offset}: {finding.reason}"
            self._log(self._cause, kind="damage")
        else:
            self._log(f"byte {finding.offset} of the journal: {finding.reason}", kind="repeated")

    def skip(self, entry: Entry) -> None:
        """Record a tick that has already been sent."""
        self._previous, self._cause = _previous_tick(entry), ""

    def count(self, entry: Entry) -> None:
        """Count and log the ticks missing between the previous tick and this one."""
        previous, now, suspected = self._previous, _previous_tick(entry), self._cause
        self._previous, self._cause = now, ""
        if previous is None:
            return
        lost = missing(previous, now, entry.head.interval_s, entry.snapshot.tick.missed, suspected=bool(suspected))
        if lost:
            self.lost += lost
            most = "at most " if previous.session != now.session else ""
            cause = suspected or "missing from the journal"
            self._log(f"lost {most}{count_text(lost, 'tick')} before {local_time(now.time_s)}: {cause}", kind="gap")


def missing(previous: PreviousTick, now: PreviousTick, interval_s: float, missed: int, *, suspected: bool) -> int:
    """Return the number of ticks missing between two ticks; an upper bound if their sessions differ.

    Ticks that the recorder missed or could not write do not count, and neither do changes to the wall clock. Between
    sessions, the recorder may simply have been stopped, so ticks count only if a gap is `suspected`.
    """
    same = previous.session == now.session
    if not same and not suspected:
        return 0
    gap_s = now.time_s - previous.time_s
    if same and previous.at_s is not None and now.at_s is not None:
        gap_s = min(gap_s, now.at_s - previous.at_s)
    unwritten = now.lost - previous.lost if same and now.lost is not None and previous.lost is not None else 0
    return max(round(gap_s / interval_s) - 1 - missed - unwritten, 0)


def _previous_tick(entry: Entry) -> PreviousTick:
    snapshot = entry.snapshot
    at_s = max((scrape.at_s for scrape in snapshot.scrapes), default=None)
    return PreviousTick(snapshot.tick.time_s, entry.head.session, at_s, entry.lost)


class TickQueue:
    """Returns every tick after a checkpoint, in order."""

    def __init__(
        self,
        open_journal: Callable[[Position | None], Journal],
        checkpoint: Checkpoint | None,
        start: Position | None,
        gaps: Gaps,
        recent: RecentTicks | None = None,
        identity: Identity | None = None,
        replay: Callable[[NodeTick], None] = lambda _: None,
        live: LiveFamilies = tuple,
    ) -> None:
        """Open the journal at the checkpoint, or, without one, at `start` (None for the journal's beginning).

        `identity` is the node's identity at `start`. `replay` is called with the ticks before the checkpoint, in order;
        `live` returns the agent's self-metrics, for ticks from memory.
        """
        self._open_journal = open_journal
        self._gaps = gaps
        self._recent = recent
        self._buffered: deque[RecentTick] = deque()
        self._number: int | None = None
        self._head: Header | None = None
        self._last: ShipTick | None = None
        self._checkpoint = checkpoint
        self._start = start
        self._first_identity = identity or Identity()
        self._replay = replay
        self._live = live
        self._open()

    def next(self) -> ShipTick | None:
        """Return the next tick, or None if there is none yet. Raises OSError."""
        if self._number is None and (tick := self._from_disk()) is not None:
            return tick
        return self._from_memory()

    def close(self) -> None:
        self._journal.close()

    def _open(self, *, seek: bool = True) -> None:
        """Open or reopen the journal at a position from which the last returned tick can be found."""
        checkpoint = self._checkpoint
        self._journal = self._open_journal(self._start if checkpoint is None else checkpoint.position)
        self._polled: Iterator[Entry | Finding | Removed] | None = None
        self._sampling: SampleStream | None = None
        self._restarts = RestartPositions()
        self._identity = self._first_identity if checkpoint is None else checkpoint.identity
        self._head = None
        self._seek_to = checkpoint if seek else None
        self._number = None
        self._gaps.restart(checkpoint)

    def _from_disk(self) -> ShipTick | None:
        """Return the next tick from the journal; None at its end."""
        while True:
            try:
                tick = self._polled_tick()
            except OSError:
                self._journal.close()
                self._open()
                raise
            if tick is not None or self._seek_to is None or self._head is None:
                return tick
            # The last tick sent is missing, perhaps after a power failure: send everything from the checkpoint on.
            self._journal.close()
            self._open(seek=False)

    def _polled_tick(self) -> ShipTick | None:
        self._polled = self._polled or self._journal.poll()
        for item in self._polled:
            if isinstance(item, Entry):
                tick = self._of_entry(item)
                if self._seek_to is None:
                    self._gaps.count(item)
                    return self._hand_out(tick)
                self._gaps.skip(item)
                if self._last is None:
                    self._replay(tick.content)
                if (tick.time_s, tick.session) == (self._seek_to.time_s, self._seek_to.session):
                    self._seek_to = None
                    self._last = tick
            else:
                if not isinstance(item, RepeatedTicks):
                    # The last tick sent may be among the missing ones: stop looking for it, and send all later ticks.
                    self._seek_to = None
                self._gaps.note(item)
        self._polled = None
        return None

    def _of_entry(self, entry: Entry) -> ShipTick:
        if self._head is None or entry.head.session != self._head.session:
            head = self._head = entry.head
            self._sampling = SampleStream(head.catalogue, head.sources, paced=head.paced, met=head.met)
            # Frames of earlier sessions are not needed any more.
            self._restarts = RestartPositions()
        assert self._sampling is not None  # noqa: S101 - it is set together with `_head`
        if self._seek_to is None:
            # Until the last tick sent is found, keep the checkpoint's identity, which is at least as recent.
            self._identity = self._identity.after(entry.snapshot)
        sample = self._sampling.add(entry.snapshot)
        # The header may change within a session, for example when Cassandra is found in another network namespace.
        where = placement_of(entry.head)
        content = NodeTick(self._head, self._identity, entry.snapshot, sample, where)
        return self._ship_tick(content, self._journal.position(entry))

    def _ship_tick(self, content: NodeTick, position: Position) -> ShipTick:
        return ShipTick(content, position, self._restarts.add(position, content.header.interval_s))

    def _hand_out(self, tick: ShipTick) -> ShipTick:
        self._last, self._checkpoint = tick, tick.checkpoint
        return tick

    def _from_memory(self) -> ShipTick | None:
        if self._recent is None or self._last is None:
            return None
        if not self._buffered and not self._fill_from_memory(self._recent, self._last):
            return None
        tick = self._buffered.popleft()
        self._number, self._identity = tick.number, tick.identity
        content = NodeTick(
            self._last.content.header, tick.identity, tick.snapshot, tick.sample, tick.placement, self._live
        )
        return self._hand_out(self._ship_tick(content, tick.position))

    def _fill_from_memory(self, recent: RecentTicks, last: ShipTick) -> bool:
        """Buffer those recent ticks in memory that follow the last returned one; return whether there are any."""
        if self._number is not None:
            ticks = recent.after(self._number)
            if ticks is None:
                # Memory no longer has the next tick: go back to the journal.
                self._open()
                return False
            self._buffered.extend(ticks)
            return bool(self._buffered)
        number = recent.at(last.time_s)
        ticks = None if number is None else recent.after(number - 1)
        # Before a clock adjustment, another tick may have had the same time, so compare the positions as well.
        if number is None or not ticks or ticks[0].number != number or ticks[0].position != last.position:
            return False
        self._number = number
        self._journal.close()
        self._buffered.extend(ticks[1:])
        return bool(self._buffered)

"""Assigns recorded sessions to nodes; resolves duplicate names, renamed nodes and overlapping recordings."""

from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from pathlib import Path

from collector.merge import aggregation
from collector.merge.sessions import Session


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
        """Add a session to its group."""
        by_name = self._by_name.setdefault(session.node, _SameName())
        candidates = [self._by_process[process] for process in session.processes if process in self._by_process]
        index = min((*candidates, *by_name.groups_for(session)), default=len(self.members))
        if index == len(self.members):
            self.members.append([])
        self.members[index].append(session)
        by_name.add(session, index)
        for process in session.processes:
            self._by_process[process] = min(index, self._by_process.get(process, index))


class _SameName:
    """The groups that have sessions with a given name. Sessions must be added in the order of `_start`."""

    def __init__(self) -> None:
        self._oldest: int | None = None
        # The oldest group that accepts any later session, regardless of its process.
        self._oldest_free: int | None = None
        # A heap with the (end time, group) of each session that has a known process and may overlap a later session.
        self._ends: list[tuple[float, int]] = []

    def groups_for(self, session: Session) -> list[int]:
        """Return a list with the index of the oldest group that accepts the session, or an empty list if none does."""
        while self._ends and self._ends[0][0] <= session.begin_s:
            self._free(heappop(self._ends)[1])
        # A session without a known process is accepted by every group.
        index = self._oldest_free if session.processes else self._oldest
        return [] if index is None else [index]

    def add(self, session: Session, index: int) -> None:
        """Add a session that belongs to the group at `index`."""
        self._oldest = index if self._oldest is None else min(index, self._oldest)
        if session.processes:
            heappush(self._ends, (session.end_s, index))
        else:
            self._free(index)

    def _free(self, index: int) -> None:
        self._oldest_free = index if self._oldest_free is None else min(index, self._oldest_free)


class _Names:
    """Assigns a unique name to each group."""

    def __init__(self, notes: list[str]) -> None:
        self._notes = notes
        self._used = {aggregation.NAME}
        self._next_number: dict[str, int] = {}

    def name_of(self, group: Sequence[Session]) -> str:
        """Return an unused name for a group; add a note if its node was renamed or its name is already in use."""
        name = group[-1].node
        others = sorted({session.node for session in group} - {name})
        if others:
            self._notes.append(f"{name} was also recorded as {', '.join(others)} (same process)")
        unique = name if name not in self._used else self._numbered(name)
        self._used.add(unique)
        if unique != name:
            why = f"two nodes are named {name} at the same time: the one"
            if name == aggregation.NAME:
                why = f"{name} is the name of the total over all nodes: the node"
            self._notes.append(f"{why} in {group[-1].folder} is shown as {unique}")
        return unique

    def _numbered(self, name: str) -> str:
        number = self._next_number.get(name, 2)
        while f"{name}~{number}" in self._used:
            number += 1
        self._next_number[name] = number + 1
        return f"{name}~{number}"


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

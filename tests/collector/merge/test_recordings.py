"""Assigning sessions to nodes gives the same result as comparing all pairs, but takes only linear time."""

import cProfile
import pstats
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.merge import aggregation
from collector.merge.recordings import Recording, Session, recordings, sessions
from collector.recording.header import Header
from tests.collector.merge.recorded_nodes import busy, record


def session(node: str, begin_s: float, length_s: float, processes: Iterable[str], name: str) -> Session:
    head = Header("1", 1.0, session=name)
    return Session(node, head, (Path(f"/rec/{name}/1.jsonl.zst"),), begin_s, begin_s + length_s, frozenset(processes))


def all_pairs(sessions: Sequence[Session]) -> list[tuple[str, list[Session], int]]:
    """Group the sessions by comparing all pairs; return each recording's name, sessions and count of ignored ones."""
    groups: list[list[Session]] = []
    for current in sorted(
        sessions, key=lambda session: (session.begin_s, session.end_s > session.begin_s, session.folder)
    ):
        same = [group for group in groups if any(is_same_node(current, member) for member in group)]
        if same:
            same[0].append(current)
        else:
            groups.append([current])
    named: dict[str, tuple[list[Session], int]] = {}
    for group in groups:
        name, used = group[-1].node, {aggregation.NAME, *named}
        numbered = (f"{name}~{number}" for number in range(2, len(groups) + 3))
        chosen: list[Session] = []
        for candidate in sorted(group, key=lambda session: session.begin_s - session.end_s):
            if not any(candidate.overlaps(kept) for kept in chosen):
                chosen.append(candidate)
        unique = name if name not in used else next(text for text in numbered if text not in used)
        named[unique] = sorted(chosen, key=lambda session: session.begin_s), len(group) - len(chosen)
    return [(name, *named[name]) for name in sorted(named)]


def is_same_node(left: Session, right: Session) -> bool:
    if left.processes & right.processes:
        return True
    return left.node == right.node and not (left.processes and right.processes and left.overlaps(right))


PROCESSES = st.sets(st.sampled_from(["p1", "p2", "p3", "p4"]), max_size=2)
NODES = st.sampled_from(["a", "b", "cluster", "a~2"])
SESSIONS = st.lists(st.tuples(NODES, st.integers(0, 20), st.integers(0, 10), PROCESSES), max_size=14).map(
    lambda rows: [
        session(node, float(begin_s), float(length_s), processes, f"s{number}")
        for number, (node, begin_s, length_s, processes) in enumerate(rows)
    ]
)


@given(SESSIONS)
def test_the_result_equals_that_of_comparing_all_pairs(sessions: list[Session]) -> None:
    grouped, notes = recordings(sessions)
    expected = all_pairs(sessions)
    assert [(recording.node, list(recording.sessions)) for recording in grouped] == [row[:2] for row in expected]
    assert sum("ignored" in note for note in notes) == sum(ignored for _, _, ignored in expected)


def test_a_copy_is_ignored() -> None:
    longer, shorter = (session("a", 0.0, length_s, ["p"], "s") for length_s in (9.0, 5.0))
    single, copy = (session("a", 20.0, 0.0, ["p"], "t") for _ in range(2))
    grouped, notes = recordings([shorter, copy, longer, single])
    assert grouped == [Recording("a", (longer, copy), frozenset({longer.folder, copy.folder}))]
    assert len(notes) == 2


@pytest.mark.parametrize("lengths_s", [(0.0, 0.0), (0.0, 9.0), (9.0, 0.0)])
def test_a_session_with_one_tick_overlaps_no_session_that_starts_at_the_same_time(
    lengths_s: tuple[float, float],
) -> None:
    sessions = [session("a", 5.0, length_s, [f"p{number}"], f"s{number}") for number, length_s in enumerate(lengths_s)]
    grouped, notes = recordings(sessions)
    assert [recording.node for recording in grouped] == ["a"]
    assert set(grouped[0].sessions) == set(sessions)
    assert not notes


@pytest.mark.parametrize(
    "make",
    [
        lambda n: session(f"node{n}", 0.0, 10.0, [f"p{n}"], f"s{n}"),
        lambda n: session("a", 10.0 * n, 9.0, [f"p{n}"], f"s{n}"),
        lambda n: session("a", 10.0 * n, 9.0, ["p"], f"s{n}"),
        lambda n: session("a", 10.0 * n, 9.0, [], f"s{n}"),
        lambda n: session("a", 0.0, 1000.0, [f"p{n}"], f"s{n}"),
        lambda n: session("a", 0.0, 10.0, ["p"], f"s{n}"),
        lambda n: session("a", 1.0 * n, 10.0, [f"p{n}"], f"s{n}"),
        lambda n: session("a", 1.0 * n, 10.0, ["p"], f"s{n}"),
    ],
    ids=["nodes", "restarts", "one process", "no process", "same name", "copies", "staggered names", "staggered"],
)
def test_the_work_is_linear_in_the_number_of_sessions(make: Callable[[int], Session]) -> None:
    few, many = (calls([make(number) for number in range(count)]) for count in (100, 400))
    assert many < 4.6 * few


def calls(sessions: Sequence[Session]) -> int:
    """Return the number of function calls, a measure of the work that does not depend on the machine."""
    with cProfile.Profile() as profile:
        recordings(sessions)
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]


@given(st.integers(1, 12), st.integers(1, 6), st.integers(0, 12))
def test_the_ends_of_a_complete_file_are_those_of_its_lines(ticks: int, full_every: int, renamed_at: int) -> None:
    snapshots = [
        replace(snapshot, node="old" if number < renamed_at else "new")
        for number, snapshot in enumerate(busy("old", ticks))
    ]
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        recording = record(Path(folder), snapshots, full_every, process="7@a")
        found, notes = sessions([recording])
        patch.setattr("collector.recording.frames.last_footer", lambda _: None)
        assert (found, notes) == sessions([recording])
    assert [(session.node, session.end_s) for session in found] == [(snapshots[-1].node, snapshots[-1].tick.time_s)]

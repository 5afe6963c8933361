"""Every tick arrives, once and in order, whatever becomes of the store, of the program, and of the journal."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.cluster.aggregation import Placement
from collector.journal import writer
from collector.journal.follower import JournalFollower
from collector.journal.writer import Limits, Position, files_of
from collector.model.identity import Identity
from exporters.recent_ticks import RecentTicks
from exporters.shipping import delivery
from exporters.shipping import shipper as loop
from exporters.shipping.checkpoint import checkpoint_path
from exporters.shipping.shipper import CPU_SHARE
from exporters.shipping.tick_queue import RecordingReader
from exporters.sinks.sink import RefusedError, UnavailableError
from tests.exporters.shipping.shipped import BEGIN_S, Node, Store, drain, end_of, ticks_of


@pytest.fixture(autouse=True)
def _short_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "FULL_EVERY", 40)
    monkeypatch.setattr(delivery, "MOST_POINTS", 30)
    monkeypatch.setattr(loop, "MOST_POINTS", 30)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path / "node")
    yield made
    made.journal.close()


def whole(node: Node) -> list[bytes]:
    """Return what a store gets that was never down."""
    store, node.store = node.store, Store("fake://other")
    shipping = node.shipping(state_folder=None, recent=None)
    drain(shipping)
    found, node.store = node.store.taken, store
    shipping.close()
    return found


def test_every_tick_is_shipped_once_and_in_order(node: Node) -> None:
    node.record(200)
    shipping = node.shipping()
    drain(shipping)
    assert ticks_of(node.store.taken) == list(range(1, 200))
    assert len(set(node.store.taken)) == len(node.store.taken)
    health = shipping.health()
    assert (health.up, health.points, health.failures, health.lost_ticks) == (True, len(node.store.taken), 0, 0)
    shipping.close()


def test_points_are_encoded_with_the_machine_of_the_recording(tmp_path: Path) -> None:
    node = Node(tmp_path / "node", recent=RecentTicks())
    shipping = node.shipping()
    for _ in range(2):
        # The second time from memory.
        node.record(5)
        drain(shipping)
    shipping.close()
    assert node.store.placements == {Placement("machine")}


def test_after_faults_everything_has_arrived_once_and_in_order(node: Node) -> None:
    node.record(120)
    down = UnavailableError("HTTP 500")
    node.store.script = [down, None, down, down, UnavailableError("HTTP 429", 7.0), None, None, down]
    shipping = node.shipping()
    drain(shipping)
    assert node.store.taken == whole(node)
    health = shipping.health()
    assert (health.up, health.why, health.failures) == (True, "", 5)
    # Half of 1, 1, 2 and 4 seconds (chance is 0.5), what was asked for besides, and from the beginning again.
    assert node.time.waits == [0.5, 0.5, 1.0, 7.0 + 2.0, 0.5]
    assert len([line for line in node.said if "store unavailable" in line]) == 3
    shipping.close()


def test_while_the_store_is_down_that_is_told(node: Node) -> None:
    node.record(100)
    node.store.always = lambda _: UnavailableError("Connection refused")
    node.time.stop_after = 12
    shipping = node.shipping()
    shipping.run()
    health = shipping.health()
    assert (health.up, health.why, health.points) == (False, "Connection refused", 0)
    assert health.failures == 12
    assert max(node.time.waits) == 30.0
    # The clock of the test says how far behind it is: of what waits the first tick.
    assert health.lag_s == pytest.approx(node.time.now_s)
    refusals = [line for line in node.said if "Connection refused" in line]
    assert 1 <= len(refusals) <= 1 + node.time.now_s / 60
    assert not checkpoint_path(node.folder.parent / "kept", node.store.name).exists()


@given(st.lists(st.integers(1, 120), min_size=1, max_size=3), st.booleans())
@settings(max_examples=20, deadline=None)
def test_a_program_that_ends_goes_on_where_it_was(
    tmp_path_factory: pytest.TempPathFactory, parts: list[int], new: bool
) -> None:
    node = Node(tmp_path_factory.mktemp("j") / "node")
    for session, ticks in enumerate(parts):
        node.record(ticks)
        shipping = node.shipping()
        drain(shipping)
        shipping.close()
        if new:
            node.again(f"{session}")
    assert node.store.taken == whole(node)
    assert len(set(node.store.taken)) == len(node.store.taken)
    node.journal.close()


def test_a_program_that_is_killed_sends_the_same_points_again(node: Node) -> None:
    node.record(300)
    first = node.shipping()
    for _ in range(20):
        first.step()
    # Nothing is closed, and the last checkpoint is not the newest.
    node.time.now_s += 10
    first.step()
    first.step()
    before = len(node.store.taken)
    second = node.shipping()
    drain(second)
    assert set(node.store.taken) == set(whole(node))
    assert ticks_of(node.store.taken[before:])[-1] == 299
    assert before < len(node.store.taken) < len(whole(node)) + 100
    first.close()
    second.close()


def test_live_ticks_come_from_memory_and_are_those_of_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = Node(tmp_path / "node", recent=RecentTicks(kept=10))
    open_journal: list[Position | None] = []

    def tail(start: Position | None) -> JournalFollower:
        open_journal.append(start)
        return JournalFollower(node.folder, start)

    shipping = node.shipping(open_journal=tail)
    node.record(30)
    drain(shipping)
    # On the disk there is nothing to read any more: who looks there fails.
    with monkeypatch.context() as patch:
        patch.setattr(JournalFollower, "poll", lambda _: pytest.fail("the journal is read"))
        for _ in range(150):
            node.record(1)
            drain(shipping)
    assert len(open_journal) == 1
    # Memory does not reach back so far.
    node.record(25)
    drain(shipping)
    node.record(5)
    drain(shipping)
    assert len(open_journal) == 2
    assert shipping.health().lag_s == 0.0
    node.record(3)
    assert shipping.health().lag_s == 3.0
    drain(shipping)
    # The journal has a tick's series in another order.
    assert ticks_of(node.store.taken) == list(range(1, node.number))
    assert sorted(node.store.taken) == sorted(whole(node))
    shipping.close()
    node.journal.close()


def test_without_a_checkpoint_it_begins_where_it_is_told(node: Node) -> None:
    node.record(50)
    node.again("two")
    now = end_of(node.folder)
    node.record(50)
    shipping = node.shipping(start=now)
    drain(shipping)
    assert ticks_of(node.store.taken) == list(range(51, 100))
    shipping.close()


def test_without_a_checkpoint_the_node_is_who_it_is_known_to_be(node: Node) -> None:
    node.record(10)
    node.again("two")
    now = end_of(node.folder)
    # In these ticks the node does not tell its cluster.
    node.record(20)
    shipping = node.shipping(start=now, identity=Identity("known", "dc1", "r1", "n1"))
    drain(shipping)
    assert ticks_of(node.store.taken) == list(range(11, 30))
    assert all(b"'known', 'dc1', 'r1', 'n1'" in point for point in node.store.taken)
    shipping.close()


def test_a_checkpoint_that_is_broken_is_said_and_all_is_sent(node: Node) -> None:
    node.record(50)
    path = checkpoint_path(node.folder.parent / "kept", node.store.name)
    path.parent.mkdir()
    for text in (b"", b"{}", b"[]", b"\xff\x00", b'{"time_s": 1e999}', b"[" * 10000, b"null"):
        path.write_bytes(text)
        node.store.taken.clear()
        shipping = node.shipping(start=end_of(node.folder))
        drain(shipping)
        assert ticks_of(node.store.taken) == list(range(1, 50))
        assert str(path) in node.said[-1]
        shipping.close()
        path.read_text().index("session")


def test_a_checkpoint_that_cannot_be_written_stops_nothing(node: Node) -> None:
    (node.folder.parent / "kept").write_text("in the way")
    node.record(100)
    shipping = node.shipping()
    drain(shipping)
    shipping.close()
    assert ticks_of(node.store.taken) == list(range(1, 100))
    assert len([line for line in node.said if "would be sent again" in line]) == 1


def test_a_journal_that_cannot_be_read_is_tried_again(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    node.record(60)
    shipping = node.shipping()
    poll = JournalFollower.poll
    broken = [OSError(5, "Input/output error", "x")] * 3

    def failing(tail: JournalFollower) -> Iterator[object]:
        if broken:
            raise broken.pop()
        yield from poll(tail)

    monkeypatch.setattr(JournalFollower, "poll", failing)
    node.time.stop_after = 8
    shipping.run()
    node.time.stop_after = None
    assert node.store.taken == whole(node)
    assert len([line for line in node.said if "Input/output error" in line]) == 1


def refuses(*bad: bytes) -> Store:
    def answer(points: object) -> Exception | None:
        assert isinstance(points, list | tuple)
        return RefusedError("HTTP 400: no") if any(word in each for each in points for word in bad) else None

    return Store(always=answer)


def test_points_that_are_refused_are_found_and_written_aside(tmp_path: Path) -> None:
    node = Node(tmp_path / "node", refuses(b"load_bytes', [('value', 120320.0)", b"Rare"))
    node.record(100)
    shipping = node.shipping()
    drain(shipping)
    health = shipping.health()
    other = Store("fake://other")
    node.store, refusing = other, node.store
    good = whole(node)
    refused = [each for each in good if each not in refusing.taken]
    assert sorted([*refusing.taken, *refused]) == sorted(good)
    assert len(refused) == health.refused_points == 2
    (dead_letters,) = (tmp_path / "kept").glob("*.refused")
    assert [line for line in dead_letters.read_bytes().splitlines() if not line.startswith(b"#")] == refused
    assert any("refuses a point" in line and str(dead_letters) in line for line in node.said)
    shipping.close()
    node.journal.close()


def test_what_is_rotated_away_is_counted_and_said(tmp_path: Path) -> None:
    node = Node(tmp_path / "node", limits=Limits(file_bytes=3000, total_bytes=12000, sync="never"))
    node.record(20)
    shipping = node.shipping()
    drain(shipping)
    shipping.close()
    node.record(2000)
    first = next(each for each in RecordingReader(files_of(node.folder)).poll())
    lost = first.snapshot.tick.time_s - BEGIN_S - 20  # type: ignore[union-attr]
    assert lost > 100
    again = node.shipping()
    drain(again)
    assert again.health().lost_ticks == lost
    assert any(f"{lost:.0f} ticks before" in line and "removed" in line for line in node.said)
    # One more: of the first tick that is there nothing is known before it.
    assert ticks_of(node.store.taken) == [*range(1, 20), *range(int(lost) + 21, 2020)]
    again.close()
    node.journal.close()


def test_what_the_recorder_missed_or_a_clock_left_out_is_no_loss(node: Node) -> None:
    node.record(10)
    node.record(1, missed=5)
    node.record(5)
    node.step_s = 3600.0
    node.record(5)
    node.step_s = -1800.0
    node.record(5)
    node.again("two")
    node.record(5)
    shipping = node.shipping()
    drain(shipping)
    assert shipping.health().lost_ticks == 0
    assert len(ticks_of(node.store.taken)) == 9 + 1 + 5 + 5 + 5 + 4
    shipping.close()
    again = node.shipping()
    drain(again)
    node.record(1)
    drain(again)
    assert ticks_of(node.store.taken[-1:]) == [node.number - 1 - 1800.0]
    assert again.health().lost_ticks == 0
    again.close()


def test_damage_is_said_and_what_it_took_is_counted(node: Node) -> None:
    node.record(100)
    node.journal.close()
    (file,) = files_of(node.folder)
    text = bytearray(file.read_bytes())
    text[len(text) // 2 : len(text) // 2 + 20] = bytes(20)
    file.write_bytes(bytes(text))
    shipping = node.shipping()
    drain(shipping)
    there = ticks_of(node.store.taken)
    assert shipping.health().lost_ticks == 99 - len(there) > 0
    assert any("damaged" in line for line in node.said)
    shipping.close()
    node.begin()


def test_a_tick_that_a_power_failure_took_from_the_journal_stops_nothing(node: Node) -> None:
    node.record(60)
    shipping = node.shipping()
    drain(shipping)
    shipping.close()
    path = checkpoint_path(node.folder.parent / "kept", node.store.name)
    path.write_text(path.read_text().replace(f"{BEGIN_S + 59:.1f}", f"{BEGIN_S + 1e6:.1f}"))
    node.again("two")
    node.record(30)
    again = node.shipping()
    drain(again)
    assert ticks_of(node.store.taken)[-1] == 89
    assert set(node.store.taken) == set(whole(node))
    again.close()


def test_only_the_times_that_are_wanted_are_sent(node: Node) -> None:
    node.record(100)
    shipping = node.shipping(begin_s=BEGIN_S + 20, end_s=BEGIN_S + 30)
    drain(shipping)
    assert ticks_of(node.store.taken) == list(range(20, 31))
    assert shipping.ticks == 11
    shipping.close()


def test_catching_up_takes_its_share_of_a_core(node: Node) -> None:
    used_s = iter(range(10**6))
    node.record(400)
    node.time.cpu_s = lambda: float(next(used_s))
    shipping = node.shipping()
    shipping.step()
    shipping.step()
    # A second of CPU time in no time at all, by the test's clock.
    assert node.time.waits == [1 / CPU_SHARE, 1 / CPU_SHARE]
    shipping.close()

"""Shipping: if the store or the program fails, no recorded tick is left out; ticks lost by the journal are reported."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.model.snapshot import Identity, Placement
from collector.recording import writer
from collector.recording.reader import JournalFollower
from collector.recording.writer import Limits, Position, files_of
from exporters.recent_ticks import RecentTicks
from exporters.sinks.shipping import delivery
from exporters.sinks.shipping import shipper as loop
from exporters.sinks.shipping.shipper import CPU_SHARE, MAX_TICKS
from exporters.sinks.shipping.tick_queue import RecordingReader, RestartPositions, checkpoint_path
from exporters.sinks.sink import NodeTick, RefusedError, UnavailableError
from tests.examples import examples
from tests.exporters.sinks.shipping.shipped import BEGIN_S, Node, Store, drain, end_of, ticks_of


@pytest.fixture(autouse=True)
def _short_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "FULL_EVERY", 40)
    monkeypatch.setattr(delivery, "MAX_POINTS", 30)
    monkeypatch.setattr(loop, "MAX_POINTS", 30)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    node = Node(tmp_path / "node")
    yield node
    node.journal.close()


def all_points(node: Node) -> list[bytes]:
    """Return the points that a store receives if nothing fails."""
    store, node.store = node.store, Store("fake://other")
    shipping = node.shipping(state_folder=None, recent=None)
    drain(shipping)
    points, node.store = node.store.taken, store
    shipping.close()
    return points


def test_every_tick_is_shipped_once_in_order(node: Node) -> None:
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
        # The second batch is read from memory.
        node.record(5)
        drain(shipping)
    shipping.close()
    assert set(node.store.placements.values()) == {Placement("machine")}


@pytest.mark.parametrize("is_from_memory", [False, True])
def test_points_have_the_network_of_their_own_header(tmp_path: Path, is_from_memory: bool) -> None:
    node = Node(tmp_path / "node", recent=RecentTicks() if is_from_memory else None, network="host")
    shipping = node.shipping()
    for _ in range(6):
        node.record(10)
        drain(shipping)
        # Cassandra is found in a container; the first header still applies until its frame of 40 ticks is complete.
        node.network = "container"
    shipping.close()
    networks = [placement.network for _, placement in sorted(node.store.placements.items())]
    assert networks == ["host"] * 39 + ["container"] * 20


def test_after_faults_every_point_has_arrived_once_in_order(node: Node) -> None:
    node.record(120)
    down = UnavailableError("HTTP 500")
    node.store.script = [down, None, down, down, UnavailableError("HTTP 429", 7.0), None, None, down]
    shipping = node.shipping()
    drain(shipping)
    assert node.store.taken == all_points(node)
    health = shipping.health()
    assert (health.up, health.reason, health.failures) == (True, "", 5)
    # Backoffs of 1, 1, 2, 4 and 1 s (success resets them), halved by the random factor, plus the
    # 7 s that the store requested.
    assert node.time.waits == [0.5, 0.5, 1.0, 7.0 + 2.0, 0.5]
    assert len([line for line in node.messages if "store unavailable" in line]) == 3
    shipping.close()


def test_a_store_outage_is_reported(node: Node) -> None:
    node.record(100)
    node.store.always = lambda _: UnavailableError("Connection refused")
    node.time.stop_after = 12
    shipping = node.shipping()
    shipping.run()
    health = shipping.health()
    assert (health.up, health.reason, health.points) == (False, "Connection refused", 0)
    assert health.failures == 12
    assert max(node.time.waits) == 30.0
    # The lag is the age of the first tick that has not been shipped.
    assert health.lag_s == pytest.approx(node.time.now_s)
    refusals = [line for line in node.messages if "Connection refused" in line]
    assert 1 <= len(refusals) <= 1 + node.time.now_s / 60
    assert not checkpoint_path(node.folder.parent / "kept", node.store.name).exists()


@given(st.lists(st.integers(1, 120), min_size=1, max_size=3), st.booleans())
@settings(max_examples=examples(20), deadline=None)
def test_a_restarted_program_continues_at_its_checkpoint(
    tmp_path_factory: pytest.TempPathFactory, parts: list[int], new_session: bool
) -> None:
    node = Node(tmp_path_factory.mktemp("j") / "node")
    for session, ticks in enumerate(parts):
        node.record(ticks)
        shipping = node.shipping()
        drain(shipping)
        shipping.close()
        if new_session:
            node.new_session(f"{session}")
    assert node.store.taken == all_points(node)
    assert len(set(node.store.taken)) == len(node.store.taken)
    node.journal.close()


def test_a_killed_program_repeats_the_points_since_its_checkpoint(node: Node) -> None:
    node.record(300)
    first = node.shipping()
    for _ in range(20):
        first.step()
    # Simulate a killed program: `first` is not closed, and its checkpoint is older than the last point sent.
    node.time.now_s += 10
    first.step()
    first.step()
    before = len(node.store.taken)
    second = node.shipping()
    drain(second)
    taken, expected = node.store.taken, all_points(node)
    assert set(taken) == set(expected)
    assert ticks_of(taken[before:])[-1] == 299
    assert before < len(taken) < len(expected) + 100
    first.close()
    second.close()


def test_live_ticks_are_read_from_memory_and_match_the_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    node = Node(tmp_path / "node", recent=RecentTicks(kept=10))
    starts: list[Position | None] = []

    def open_follower(start: Position | None) -> JournalFollower:
        starts.append(start)
        return JournalFollower(node.folder, start)

    shipping = node.shipping(open_journal=open_follower)
    node.record(30)
    drain(shipping)
    # Within this block, the test fails if the journal is read.
    with monkeypatch.context() as patch:
        patch.setattr(JournalFollower, "poll", lambda _: pytest.fail("the journal is read"))
        for _ in range(150):
            node.record(1)
            drain(shipping)
    assert len(starts) == 1
    # Memory holds only ten ticks, so the first of these 25 must be read from the journal.
    node.record(25)
    drain(shipping)
    node.record(5)
    drain(shipping)
    assert len(starts) == 2
    assert shipping.health().lag_s == 0.0
    node.record(3)
    assert shipping.health().lag_s == 3.0
    drain(shipping)
    # In the journal, the series of a tick are in a different order.
    assert ticks_of(node.store.taken) == list(range(1, node.number))
    assert sorted(node.store.taken) == sorted(all_points(node))
    shipping.close()
    node.journal.close()


@pytest.mark.parametrize("interval_s", [1.0, 60.0, 200.0, 3600.0])
def test_reading_resumes_before_the_previous_reading_of_the_slowest_source(interval_s: float) -> None:
    restarts = RestartPositions()
    for number in range(400):
        resumed = restarts.add(Position("file", number), interval_s).offset
    # A source that answers on every second tick needs two ticks; one that answers every 150 s needs those of 150 s.
    assert number - resumed >= max(2, 150 / interval_s) - 1


def test_without_a_checkpoint_shipping_begins_at_the_given_position(node: Node) -> None:
    node.record(50)
    node.new_session("two")
    now = end_of(node.folder)
    node.record(50)
    shipping = node.shipping(start=now)
    drain(shipping)
    assert ticks_of(node.store.taken) == list(range(51, 100))
    shipping.close()


def test_without_a_checkpoint_points_have_the_given_identity(node: Node) -> None:
    node.record(10)
    node.new_session("two")
    now = end_of(node.folder)
    # These ticks do not contain the cluster name.
    node.record(20)
    shipping = node.shipping(start=now, identity=Identity("known", "dc1", "r1", "n1"))
    drain(shipping)
    assert ticks_of(node.store.taken) == list(range(11, 30))
    assert all(b"'known', 'dc1', 'r1', 'n1'" in point for point in node.store.taken)
    shipping.close()


def test_a_malformed_checkpoint_is_reported_and_everything_is_sent(node: Node) -> None:
    node.record(50)
    path = checkpoint_path(node.folder.parent / "kept", node.store.name)
    path.parent.mkdir()
    for text in (b"", b"{}", b"[]", b"\xff\x00", b'{"time_s": 1e999}', b"[" * 10000, b"null"):
        path.write_bytes(text)
        node.store.taken.clear()
        shipping = node.shipping(start=end_of(node.folder))
        drain(shipping)
        assert ticks_of(node.store.taken) == list(range(1, 50))
        assert str(path) in node.messages[-1]
        shipping.close()
        assert "session" in path.read_text()


def test_an_unwritable_checkpoint_does_not_stop_shipping(node: Node) -> None:
    (node.folder.parent / "kept").write_text("in the way")
    node.record(100)
    shipping = node.shipping()
    drain(shipping)
    shipping.close()
    assert ticks_of(node.store.taken) == list(range(1, 100))
    assert len([line for line in node.messages if "would be sent again" in line]) == 1


def test_an_unreadable_journal_is_retried(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    node.record(60)
    shipping = node.shipping()
    poll = JournalFollower.poll
    broken = [OSError(5, "Input/output error", "x")] * 3

    def failing(follower: JournalFollower) -> Iterator[object]:
        if broken:
            raise broken.pop()
        yield from poll(follower)

    monkeypatch.setattr(JournalFollower, "poll", failing)
    node.time.stop_after = 8
    shipping.run()
    node.time.stop_after = None
    assert node.store.taken == all_points(node)
    assert len([line for line in node.messages if "Input/output error" in line]) == 1


def refuses(*bad: bytes) -> Store:
    def answer(points: object) -> Exception | None:
        assert isinstance(points, list | tuple)
        return RefusedError("HTTP 400: no") if any(word in point for point in points for word in bad) else None

    return Store(always=answer)


def test_refused_points_are_isolated_and_written_to_the_dead_letter_file(tmp_path: Path) -> None:
    node = Node(tmp_path / "node", refuses(b"load_bytes', [('value', 120320.0)", b"Rare"))
    node.record(100)
    shipping = node.shipping()
    drain(shipping)
    health = shipping.health()
    store = node.store
    expected = all_points(node)
    refused = [point for point in expected if point not in store.taken]
    assert sorted([*store.taken, *refused]) == sorted(expected)
    assert len(refused) == health.refused_points == 2
    (dead_letters,) = (tmp_path / "kept").glob("*.refused")
    assert [line for line in dead_letters.read_bytes().splitlines() if not line.startswith(b"#")] == refused
    assert any("refused a point" in line and str(dead_letters) in line for line in node.messages)
    shipping.close()
    node.journal.close()


def test_ticks_removed_by_rotation_are_counted_and_reported(tmp_path: Path) -> None:
    node = Node(tmp_path / "node", limits=Limits(file_bytes=3000, total_bytes=12000, sync="never"))
    node.record(20)
    shipping = node.shipping()
    drain(shipping)
    shipping.close()
    node.record(1000)
    first = next(iter(RecordingReader(files_of(node.folder)).poll()))
    lost = first.snapshot.tick.time_s - BEGIN_S - 20  # type: ignore[union-attr]
    assert lost > 100
    resumed = node.shipping()
    drain(resumed)
    assert resumed.health().lost_ticks == lost
    assert any(f"{lost:.0f} ticks before" in line and "removed" in line for line in node.messages)
    # The first remaining tick has no predecessor and thus no sample.
    assert ticks_of(node.store.taken) == [*range(1, 20), *range(int(lost) + 21, 1020)]
    resumed.close()
    node.journal.close()


def test_missed_ticks_and_clock_steps_do_not_count_as_lost(node: Node) -> None:
    node.record(10)
    node.record(1, missed=5)
    node.record(5)
    node.step_s = 3600.0
    node.record(5)
    node.step_s = -1800.0
    node.record(5)
    node.new_session("two")
    node.record(5)
    shipping = node.shipping()
    drain(shipping)
    assert shipping.health().lost_ticks == 0
    assert len(ticks_of(node.store.taken)) == 9 + 1 + 5 + 5 + 5 + 4
    shipping.close()
    resumed = node.shipping()
    drain(resumed)
    node.record(1)
    drain(resumed)
    assert ticks_of(node.store.taken[-1:]) == [node.number - 1 - 1800.0]
    assert resumed.health().lost_ticks == 0
    resumed.close()


def test_damage_is_reported_and_lost_ticks_are_counted(node: Node) -> None:
    node.record(100)
    node.journal.close()
    (file,) = files_of(node.folder)
    content = bytearray(file.read_bytes())
    content[len(content) // 2 : len(content) // 2 + 20] = bytes(20)
    file.write_bytes(bytes(content))
    shipping = node.shipping()
    drain(shipping)
    shipped = ticks_of(node.store.taken)
    assert shipping.health().lost_ticks == 99 - len(shipped) > 0
    assert any("damaged" in line for line in node.messages)
    shipping.close()
    node.begin()


def test_a_checkpoint_ahead_of_the_journal_does_not_stop_shipping(node: Node) -> None:
    node.record(60)
    shipping = node.shipping()
    drain(shipping)
    shipping.close()
    path = checkpoint_path(node.folder.parent / "kept", node.store.name)
    path.write_text(path.read_text().replace(f"{BEGIN_S + 59:.1f}", f"{BEGIN_S + 1e6:.1f}"))
    node.new_session("two")
    node.record(30)
    resumed = node.shipping()
    drain(resumed)
    assert ticks_of(node.store.taken)[-1] == 89
    assert set(node.store.taken) == set(all_points(node))
    resumed.close()


def test_only_the_selected_time_range_is_sent(node: Node) -> None:
    node.record(100)
    shipping = node.shipping(begin_s=BEGIN_S + 20, end_s=BEGIN_S + 30)
    drain(shipping)
    assert ticks_of(node.store.taken) == list(range(20, 31))
    assert shipping.ticks == 11
    shipping.close()


def test_catching_up_uses_a_limited_share_of_a_core(node: Node) -> None:
    used_s = iter(range(10**6))
    node.record(400)
    node.time.cpu_s = lambda: float(next(used_s))
    shipping = node.shipping()
    shipping.step()
    shipping.step()
    # According to the simulated clocks, each step takes a second of CPU time but no wall time.
    assert node.time.waits == [1 / CPU_SHARE, 1 / CPU_SHARE]
    shipping.close()


class SelectiveStore(Store):
    """A store that needs no points of any tick."""

    encoded = 0

    def encode(self, tick: NodeTick) -> list[bytes]:
        self.encoded += 1
        return []


def test_a_sink_that_needs_few_ticks_can_be_stopped_and_pauses(node: Node) -> None:
    node.record(2 * MAX_TICKS)
    node.store = store = SelectiveStore()
    node.time.cpu_s = lambda: 0.001 * store.encoded
    shipping = node.shipping(cpu_share=0.5)
    assert shipping.step()
    assert store.encoded <= MAX_TICKS
    assert node.time.waits == [pytest.approx(2 * 0.001 * store.encoded)]
    drain(shipping)
    assert store.encoded == 2 * MAX_TICKS
    shipping.close()

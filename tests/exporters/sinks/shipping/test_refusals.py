"""Refused points: dropped at once if the store accepts other points, otherwise only after an hour."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from exporters.metrics_page.self_metrics import SinkHealth
from exporters.sinks.shipping import delivery
from exporters.sinks.shipping import shipper as loop
from exporters.sinks.shipping.delivery import GIVE_UP_AFTER_S, DeadLetters
from exporters.sinks.shipping.tick_queue import checkpoint_path
from exporters.sinks.sink import RefusedError, TooLargeError
from tests.exporters.sinks.shipping.shipped import Node, drain, ticks_of

MAX_POINTS = 100


@pytest.fixture(autouse=True)
def _small_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "MAX_POINTS", MAX_POINTS)
    monkeypatch.setattr(loop, "MAX_POINTS", MAX_POINTS)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    node = Node(tmp_path / "node")
    node.record(200)
    yield node
    node.journal.close()


def refuses_all(reason: str = "HTTP 400: field type conflict", *, all_points: bool = False) -> RefusedError:
    return RefusedError(reason, all_points=all_points)


def run_for(node: Node, seconds: float) -> SinkHealth:
    """Ship for `seconds` of simulated time, and return the sink's health at the end."""
    shipping = node.shipping()
    node.time.stop_at_s = node.time.now_s + seconds
    shipping.run()
    node.time.stop_at_s = None
    return shipping.health()


def ship_the_rest(node: Node) -> SinkHealth:
    shipping = node.shipping()
    drain(shipping)
    shipping.close()
    return shipping.health()


def dead_letters(node: Node) -> list[bytes]:
    return [
        line
        for path in (node.folder.parent / "kept").glob("*.refused")
        for line in path.read_bytes().splitlines()
        if not line.startswith(b"#")
    ]


@pytest.mark.parametrize("all_points", [False, True])
def test_a_store_that_refuses_every_point_is_down_and_no_point_is_lost(node: Node, all_points: bool) -> None:
    node.store.always = lambda _: refuses_all(all_points=all_points)
    health = run_for(node, GIVE_UP_AFTER_S - 60)
    assert (health.up, health.points, health.refused_points) == (False, 0, 0)
    assert health.reason == "it refuses every point: HTTP 400: field type conflict"
    assert health.lag_s == pytest.approx(node.time.now_s)
    assert not checkpoint_path(node.folder.parent / "kept", node.store.name).exists()
    assert dead_letters(node) == []
    # Each attempt sends a few requests, not one per point.
    assert node.store.attempts <= health.failures * (1 + delivery.PROBES)
    # Once the store is configured correctly, all points arrive.
    node.store.always = lambda _: None
    assert ship_the_rest(node).up
    assert ticks_of(node.store.taken) == list(range(1, 200))


@pytest.mark.parametrize("all_points", [False, True])
def test_after_an_hour_of_the_same_refusal_shipping_continues(node: Node, all_points: bool) -> None:
    node.store.always = lambda points: refuses_all(f"HTTP 400: unable to parse '{points[0]!r}'", all_points=all_points)
    health = run_for(node, GIVE_UP_AFTER_S + 120)
    letters = dead_letters(node)
    # Only the first batch is retried for an hour; the others are written to the dead-letter file at once.
    assert (health.up, health.points) == (False, 0)
    assert health.refused_points == len(letters) == len(set(letters))
    assert ticks_of(letters) == list(range(1, 200))
    assert health.lag_s == 0
    # Later points are accepted again.
    node.store.always = lambda _: None
    node.record(10)
    assert ship_the_rest(node).up
    assert ticks_of(node.store.taken) == list(range(200, 210))


def test_a_different_reason_restarts_the_hour(node: Node) -> None:
    node.store.always = lambda _: refuses_all(f"HTTP 400: {'ab'[node.time.now_s > GIVE_UP_AFTER_S - 60]}")
    assert run_for(node, 2 * GIVE_UP_AFTER_S - 180).refused_points == 0


def test_points_are_refused_at_once_if_the_store_accepts_others(node: Node) -> None:
    def bytes_only(points: Sequence[bytes]) -> Exception | None:
        return refuses_all() if any(b"load_bytes" not in point for point in points) else None

    node.store.always = bytes_only
    health = ship_the_rest(node)
    assert (health.up, node.time.waits) == (True, [])
    assert sorted(ticks_of(node.store.taken)) == list(range(1, 200))
    assert health.points == len(set(node.store.taken)) == len(node.store.taken)
    assert len(dead_letters(node)) == health.refused_points > health.points


def test_a_proxy_that_accepts_only_small_requests_loses_nothing(node: Node) -> None:
    node.store.always = lambda points: TooLargeError("HTTP 413: nginx") if len(points) > 10 else None
    assert (ship_the_rest(node).refused_points, node.time.waits) == (0, [])
    assert ticks_of(node.store.taken) == list(range(1, 200))
    node.store.always = lambda _: TooLargeError("HTTP 413: nginx")
    node.record(10)
    health = run_for(node, 2 * GIVE_UP_AFTER_S)
    assert (health.up, health.refused_points) == (False, 0)


def test_the_dead_letter_file_keeps_as_many_points_as_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exporters.sinks.shipping.delivery.MAX_FILE_BYTES", 25)
    file = DeadLetters(tmp_path / "refused")
    assert file.write([b"1234567", b"1234567", b"1234567"], "why") == 2
    assert (tmp_path / "refused").read_bytes() == b"# why\n1234567\n1234567\n"
    assert file.write([b"1"], "why") == 0

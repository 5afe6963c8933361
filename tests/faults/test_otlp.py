"""OTLP to a receiver that is down, rejects points or is another program: nothing is lost that could be kept."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from exporters.sinks.parts.all_sinks import sink_of
from tests.exporters.sinks.otlp.otlp_messages import DataPoint
from tests.exporters.sinks.shipping.shipped import BEGIN_S, Node, drain
from tests.faults.otlp_receiver import OtlpReceiver, Response, accepted

TICKS = 100


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    recorded = Node(tmp_path / "node")
    recorded.record(TICKS)
    yield recorded
    recorded.journal.close()


@pytest.fixture
def receiver() -> Iterator[OtlpReceiver]:
    with closing(OtlpReceiver()) as running:
        yield running


def test_every_tick_arrives_after_faults(node: Node, receiver: OtlpReceiver) -> None:
    responses: list[Response] = [(503, {"Retry-After": "7"}, b""), accepted(), (500, {}, b"<html>"), (429, {}, b"")]
    receiver.respond = lambda _: responses.pop(0) if responses else accepted()
    node.store = sink_of(receiver.url)  # type: ignore[assignment]
    shipping = node.shipping()
    drain(shipping)
    shipping.close()
    times = {point.time_ms for point in receiver.points.values()}
    assert times == {round((BEGIN_S + number) * 1000) for number in range(TICKS)}
    assert shipping.health().refused_points == 0
    assert node.time.waits[0] == 7.5


def test_rejected_data_points_are_counted(node: Node, receiver: OtlpReceiver) -> None:
    receiver.respond = lambda points: accepted(min(300, len(points)), "too old")
    node.store = sink_of(receiver.url)  # type: ignore[assignment]
    shipping = node.shipping()
    drain(shipping)
    shipping.close()
    assert shipping.health().refused_points == 300 * len(receiver.headers)
    assert any("too old" in line for line in node.messages)


def test_a_warning_of_the_receiver_is_logged(node: Node, receiver: OtlpReceiver) -> None:
    receiver.respond = lambda _: accepted(0, "some units are unknown")
    node.store = sink_of(receiver.url)  # type: ignore[assignment]
    shipping = node.shipping()
    drain(shipping)
    shipping.close()
    assert shipping.health().refused_points == 0
    assert len([line for line in node.messages if "the store accepted all points: some units are unknown" in line]) == 1


def test_late_points_that_roll_back_a_request_do_not_lose_others(node: Node, receiver: OtlpReceiver) -> None:
    """Prometheus stores nothing of a request with a late point."""
    late_ms = round((BEGIN_S + 30) * 1000)
    receiver.respond = lambda points: (
        (400, {}, b"out of order sample") if any(point.time_ms < late_ms for point in points) else accepted()
    )
    node.store = sink_of(receiver.url)  # type: ignore[assignment]
    shipping = node.shipping()
    drain(shipping)
    shipping.close()
    times = {point.time_ms for point in receiver.points.values()}
    assert times == {round((BEGIN_S + number) * 1000) for number in range(30, TICKS)}
    stored = shipping.health().points
    assert stored == len(receiver.points)
    assert node.time.waits == []


def test_a_page_for_people_is_not_a_receiver(node: Node, receiver: OtlpReceiver) -> None:
    responses: list[Response] = [(202, {"Content-Type": "text/html"}, b"<!DOCTYPE html><title>Log in</title>")]
    receiver.respond = lambda _: responses.pop(0) if responses else accepted()
    node.store = sink_of(receiver.url)  # type: ignore[assignment]
    shipping = node.shipping()
    drain(shipping)
    shipping.close()
    times = {point.time_ms for point in receiver.points.values()}
    assert times == {round((BEGIN_S + number) * 1000) for number in range(TICKS)}
    assert any("not from the store itself" in line for line in node.messages)


def test_an_invalid_metric_is_isolated(node: Node, receiver: OtlpReceiver) -> None:
    def respond(points: list[DataPoint]) -> Response:
        is_invalid = any(point.name == "load" for point in points)
        return (400, {}, b"invalid metric") if is_invalid else accepted()

    receiver.respond = respond
    node.store = sink_of(receiver.url)  # type: ignore[assignment]
    shipping = node.shipping()
    drain(shipping)
    shipping.close()
    assert shipping.health().refused_points == TICKS
    (refused,) = (node.folder.parent / "kept").glob("*.refused")
    assert refused.read_text().count("\nload ") == TICKS


def test_the_token_is_sent_and_never_logged(node: Node, receiver: OtlpReceiver, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("tops3cret\n")
    token.chmod(0o600)
    responses: list[Response] = [(401, {}, b"no tops3cret here")]
    receiver.respond = lambda _: responses.pop(0) if responses else accepted()
    node.store = sink_of(f"{receiver.url}?token_file={token}&labels=env:prod")  # type: ignore[assignment]
    shipping = node.shipping()
    drain(shipping)
    shipping.close()
    assert {headers["Authorization"] for headers in receiver.headers} == {"Bearer tops3cret"}
    assert any("credentials missing or rejected" in line for line in node.messages)
    assert not any("tops3cret" in line for line in node.messages)
    assert all(("env", "prod") in point.attributes for point in receiver.points.values())

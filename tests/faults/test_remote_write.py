"""Remote write to receivers of both versions, and to those that reject samples: nothing is lost or sent twice."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from exporters.sinks.parts.all_sinks import sink_of
from exporters.sinks.shipping import delivery, shipper
from exporters.sinks.sink import SinkUrlError
from tests.exporters.sinks.remote_write.messages import Decoded, Labels
from tests.exporters.sinks.shipping.shipped import BEGIN_S, Node, drain
from tests.faults.remote_write_receiver import WRITTEN, Receiver, Response

TICKS, FEW_TICKS = 120, 15
COUNT = "casstat_series"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    recorded = Node(tmp_path / "node")
    recorded.record(TICKS)
    yield recorded
    recorded.journal.close()


@pytest.fixture
def few(tmp_path: Path) -> Iterator[Node]:
    """A node for tests in which each tick takes many requests."""
    recorded = Node(tmp_path / "node")
    recorded.record(FEW_TICKS)
    yield recorded
    recorded.journal.close()


def ship(node: Node, receiver: Receiver, parameters: str = "") -> None:
    node.store = sink_of(f"{receiver.url}{parameters}")  # type: ignore[assignment]
    shipping = node.shipping(state_folder=None)
    drain(shipping)
    shipping.close()


def without_types(receiver: Receiver) -> dict[tuple[Labels, int], float | None]:
    assert receiver.conflicts == []
    return {key: sample.value for key, sample in receiver.samples.items()}


def test_both_versions_carry_the_same_samples(node: Node) -> None:
    with closing(Receiver()) as both, closing(Receiver((1,))) as old:
        ship(node, both)
        ship(node, old)
        assert without_types(both) == without_types(old)
        assert {time_ms for _, time_ms in both.samples} == {round((BEGIN_S + n) * 1000) for n in range(TICKS)}
        assert {version for version, _ in both.requests} == {"2.0.0"}
        # After the first status 415, only 1.0 is used.
        assert [version for version, _ in old.requests[:3]] == ["2.0.0", "0.1.0", "0.1.0"]
        assert {sample.kind for sample in both.samples.values()} >= {1, 2, 3}


@pytest.mark.parametrize("response", [Response(204), Response(200), Response(400, body=b"snappy: corrupt input")])
def test_a_receiver_that_does_not_know_2_0_gets_1_0(node: Node, response: Response) -> None:
    """It ignores the unknown fields of 2.0 and reports success, or rejects the request."""
    with closing(Receiver((1,), response)) as old, closing(Receiver()) as both:
        ship(node, old)
        ship(node, both)
        assert without_types(old) == without_types(both)
        assert [version for version, _ in old.requests[:3]] == ["2.0.0", "0.1.0", "0.1.0"]


@pytest.mark.parametrize("response", [Response(204), Response(400, body=b"snappy: corrupt input")])
def test_an_outage_at_first_does_not_look_like_2_0(node: Node, response: Response) -> None:
    with closing(Receiver((1,), Response(503), response)) as old, closing(Receiver()) as both:
        ship(node, old)
        ship(node, both)
        assert without_types(old) == without_types(both)
        assert [version for version, _ in old.requests[:4]] == ["2.0.0", "2.0.0", "0.1.0", "0.1.0"]


@pytest.mark.parametrize("fault", [Response(500), Response(503, {"Retry-After": "7"}), Response(429), Response(404)])
def test_after_an_outage_everything_arrives(node: Node, fault: Response) -> None:
    with closing(Receiver((1, 2), fault, fault)) as receiver, closing(Receiver()) as other:
        ship(node, receiver)
        ship(node, other)
        assert without_types(receiver) == without_types(other)


def test_late_samples_are_counted_and_the_others_are_stored(node: Node) -> None:
    late_ms = round((BEGIN_S + 30) * 1000)

    def rejects(decoded: list[Decoded]) -> Response | None:
        late = sum(sample.time_ms < late_ms for sample in decoded)
        written = {WRITTEN: str(len(decoded) - late)}
        return Response(400, written, b"out of order sample") if late else None

    with closing(Receiver()) as receiver:
        receiver.rejects = rejects
        node.store = sink_of(receiver.url)  # type: ignore[assignment]
        shipping = node.shipping()
        drain(shipping)
        health = shipping.health()
        sent = sum(count for _, count in receiver.requests)
        assert health.points + health.refused_points == sent
        assert health.points > len(receiver.samples) > 0
        assert health.refused_points > 0
        assert any("out of order sample" in line for line in node.messages)
        assert node.time.waits == []
        shipping.close()


def expected_without(node: Node, is_missing: Callable[[Labels, int], bool]) -> dict[tuple[Labels, int], float | None]:
    """Return what a receiver without faults stores, without some samples."""
    with closing(Receiver()) as receiver:
        ship(node, receiver)
        return {key: sample.value for key, sample in receiver.samples.items() if not is_missing(*key)}


@pytest.mark.parametrize("response", [Response(400, body=b"out of bounds"), Response(409, body=b"store: conflict")])
@pytest.mark.parametrize("late_ticks", [1, 10])
def test_1_0_rolls_back_a_request_with_a_late_sample_and_the_others_are_stored(
    node: Node, late_ticks: int, response: Response
) -> None:
    late_ms = round((BEGIN_S + late_ticks) * 1000)
    expected = expected_without(node, lambda _, time_ms: time_ms < late_ms)
    with closing(Receiver((1,))) as receiver:
        receiver.rejects = lambda decoded: response if any(sample.time_ms < late_ms for sample in decoded) else None
        node.store = sink_of(receiver.url)  # type: ignore[assignment]
        shipping = node.shipping()
        drain(shipping)
        assert without_types(receiver) == expected
        assert shipping.health().refused_points > 0
        # The samples of a tick are not tried one by one.
        assert len(receiver.requests) < 30 * (late_ticks + 5) * (2 if response.status == 409 else 1)
        assert node.time.waits == []
        shipping.close()


def test_1_0_gets_the_other_series_of_a_tick_if_one_is_late(node: Node) -> None:
    def is_late(labels: Labels, time_ms: int) -> bool:
        return dict(labels)["__name__"] == "load_bytes" and time_ms < (BEGIN_S + 5) * 1000

    expected = expected_without(node, is_late)
    with closing(Receiver((1,))) as receiver:
        receiver.rejects = lambda decoded: (
            Response(400, body=b"out of order sample")
            if any(is_late(sample.labels, sample.time_ms) for sample in decoded)
            else None
        )
        node.store = sink_of(receiver.url)  # type: ignore[assignment]
        shipping = node.shipping()
        drain(shipping)
        assert without_types(receiver) == expected
        assert shipping.health().refused_points == 5
        shipping.close()


@pytest.mark.parametrize("versions", [(1,), (1, 2)])
def test_the_search_for_an_invalid_series_sends_no_sample_before_an_earlier_one(
    few: Node, versions: tuple[int, ...]
) -> None:
    """The receiver rejects a sample that is older than the last one of its series."""
    expected = expected_without(few, lambda labels, _: dict(labels)["__name__"] == "load_bytes")
    last_ms: dict[Labels, int] = {}

    def rejects(decoded: list[Decoded]) -> Response | None:
        if any(sample.name == "load_bytes" for sample in decoded):
            return Response(400, body=b"label name is invalid")
        if any(sample.time_ms < last_ms.get(sample.labels, 0) for sample in decoded):
            return Response(400, body=b"out of order sample")
        last_ms.update({sample.labels: sample.time_ms for sample in decoded})
        return None

    with closing(Receiver(versions)) as receiver:
        receiver.rejects = rejects
        few.store = sink_of(receiver.url)  # type: ignore[assignment]
        shipping = few.shipping()
        drain(shipping)
        assert without_types(receiver) == expected
        assert shipping.health().refused_points == FEW_TICKS
        shipping.close()


def test_a_store_without_native_histograms_gets_the_classic_ones(node: Node) -> None:
    # The number of series includes the native histograms.
    expected = expected_without(node, lambda labels, _: dict(labels)["__name__"] == COUNT)
    with closing(Receiver()) as receiver:
        receiver.accepts_native = False
        node.store = sink_of(f"{receiver.url}?native_histograms=1")  # type: ignore[assignment]
        shipping = node.shipping()
        drain(shipping)
        stored = {key: value for key, value in without_types(receiver).items() if receiver.samples[key].name != COUNT}
        assert stored == expected
        assert shipping.health().refused_points == TICKS
        assert len([line for line in node.messages if "native histograms are disabled" in line]) == 1
        assert node.time.waits == []
        shipping.close()


def test_rejections_of_all_shards_are_counted(node: Node) -> None:
    def rejects(decoded: list[Decoded]) -> Response:
        return Response(400, {WRITTEN: str(len(decoded) - 1)}, b"too old sample")

    with closing(Receiver()) as receiver:
        receiver.rejects = rejects
        node.store = sink_of(f"{receiver.url}?shards=3")  # type: ignore[assignment]
        shipping = node.shipping()
        drain(shipping)
        assert shipping.health().refused_points == len(receiver.requests) >= 3
        shipping.close()


@pytest.mark.parametrize(
    "response",
    [
        Response(400, {WRITTEN: "1"}),
        Response(400, {WRITTEN: "1"}, b'{"message": "duplicate sample"}'),
        # Every request has fewer samples.
        Response(400, {WRITTEN: "999999"}, b"duplicate sample"),
    ],
)
def test_a_stated_number_of_samples_shows_that_the_rest_is_refused(node: Node, response: Response) -> None:
    with closing(Receiver((1, 2), response)) as receiver:
        node.store = sink_of(receiver.url)  # type: ignore[assignment]
        shipping = node.shipping()
        drain(shipping)
        sent, stated = receiver.requests[0][1], int(response.headers[WRITTEN])
        assert shipping.health().refused_points == max(sent - stated, 0)
        assert node.time.waits == []
        shipping.close()


@pytest.mark.parametrize(
    "response",
    [
        Response(200, body=b"<!DOCTYPE html><title>Log in</title>"),
        Response(503, {WRITTEN: "9" * 5000}),
    ],
)
def test_other_programs_are_not_stores(node: Node, response: Response) -> None:
    expected = expected_without(node, lambda *_: False)
    with closing(Receiver((1,), response, response)) as receiver:
        ship(node, receiver)
        assert without_types(receiver) == expected
        assert node.time.waits


@pytest.mark.parametrize("shown", ["me:pa55word", "bWU6cGE1NXdvcmQ=", "pa55word"])
def test_no_form_of_a_password_is_logged(node: Node, tmp_path: Path, shown: str) -> None:
    password = tmp_path / "password"
    password.write_text("me:pa55word\n")
    password.chmod(0o600)
    with closing(Receiver((1, 2), Response(401, body=f"unknown: {shown}!".encode()))) as receiver:
        ship(node, receiver, f"?basic_auth_file={password}")
        assert any("unknown: ***!" in line for line in node.messages)
        assert not any(shown in line for line in node.messages)


def test_invalid_series_are_isolated_and_written_as_text(few: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "MAX_POINTS", 200)
    monkeypatch.setattr(shipper, "MAX_POINTS", 200)

    def rejects(decoded: list[Decoded]) -> Response | None:
        invalid = any(sample.name == "load_bytes" for sample in decoded)
        return Response(400, {WRITTEN: "0"} if len(decoded) == 1 else {}, b"label name is invalid") if invalid else None

    with closing(Receiver()) as receiver:
        receiver.rejects = rejects
        few.store = sink_of(receiver.url)  # type: ignore[assignment]
        shipping = few.shipping()
        drain(shipping)
        assert shipping.health().refused_points == FEW_TICKS
        (refused,) = (few.folder.parent / "kept").glob("*.refused")
        lines = [line for line in refused.read_text().splitlines() if not line.startswith("#")]
        assert len(lines) == FEW_TICKS
        assert lines[0] == 'load_bytes{cluster="prod",instance="n1",job="casstat",node="n1"} 102912.0 1795000000000'
        shipping.close()


def test_shards_store_the_same_samples(node: Node) -> None:
    with closing(Receiver()) as one, closing(Receiver()) as four:
        ship(node, one)
        ship(node, four, "?shards=4")
        assert without_types(four) == without_types(one)


def test_only_the_failing_shard_is_sent_again(node: Node) -> None:
    with closing(Receiver((1, 2), Response(500))) as failing, closing(Receiver()) as working:
        ship(node, failing, "?shards=3")
        ship(node, working, "?shards=3")
        assert without_types(failing) == without_types(working)
        assert len(failing.requests) == len(working.requests) + 1


def test_headers_carry_the_tenant_and_credentials(node: Node, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("tops3cret\n")
    token.chmod(0o600)
    password = tmp_path / "password"
    password.write_text("me:pa55\n")
    password.chmod(0o600)
    with closing(Receiver()) as receiver:
        ship(node, receiver, f"?tenant=team-a&token_file={token}&labels=env:prod,job:db")
        ship(node, receiver, f"?basic_auth_file={password}")
        assert {headers.get("X-Scope-OrgID") for headers in receiver.headers} == {"team-a", None}
        assert {headers["Authorization"] for headers in receiver.headers} == {"Bearer tops3cret", "Basic bWU6cGE1NQ=="}
        assert {headers["Content-Encoding"] for headers in receiver.headers} == {"snappy"}
        labels = [dict(sample.labels) for sample in receiver.samples.values()]
        assert {(label.get("env"), label["job"]) for label in labels} == {("prod", "db"), (None, "casstat")}
        assert not any("tops3cret" in line or "pa55" in line for line in node.messages)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ("?labels=env", "must be NAME:VALUE"),
        ("?labels=__name__:x", "must be NAME:VALUE"),
        ("?shards=0", "must be a number from 1 to 16"),
        ("?shards=x", "must be a number from 1 to 16"),
        ("?token_file=/a&basic_auth_file=/b", "exclude each other"),
        ("?label=env:prod", "did you mean labels?"),
        ("?tenant=a%0AX-Admin:1", "must be printable ASCII text"),
        ("?tenant=%E4%BD%A0", "must be printable ASCII text"),
    ],
)
def test_invalid_urls(parameters: str, message: str) -> None:
    with pytest.raises(SinkUrlError) as caught:
        sink_of(f"prometheus+http://h/api/v1/write{parameters}")
    assert message in str(caught.value)

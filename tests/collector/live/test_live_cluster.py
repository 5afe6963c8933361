"""A live cluster in this process: casstat agents and Jolokia agents on loopback, followed over real connections."""

import os
import queue
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from collector.agents.addresses import parse_address
from collector.http.access import Access
from collector.live import feeds, live_cluster
from collector.live.cluster_interval import ClusterInterval, NodeStatus, State
from collector.live.feeds import JolokiaFeed
from collector.live.live_cluster import LiveCluster, Plan, Request
from collector.model.snapshot import Sample
from collector.node.jolokia.client import Jolokia
from tests.collector.live.node_samples import reads_per_s
from tests.examples import thorough
from tests.faults import fake_agents
from tests.faults.fake_agents import FakeAgent, FakeAgents
from tests.faults.fake_jolokia import FakeJolokia

pytestmark = thorough

# Each parallel test process uses its own addresses.
_NET = 128 + int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
FIRST, SECOND, UNUSED = (f"127.0.{_NET}.{number}" for number in (1, 2, 3))
READS = "cassandra_client_requests_total"
REQUEST = Request(("cassandra_client_*",), frozenset({READS}), frozenset())
TIMEOUT_S = 60.0
NO_ACCESS = Access()


class Followed:
    """A running live cluster and the intervals that it delivers."""

    def __init__(
        self, *nodes: str, seeds: tuple[str, ...] = (), request: Request = REQUEST, access: Access = NO_ACCESS
    ) -> None:
        self._intervals: queue.Queue[ClusterInterval] = queue.Queue()
        plan = Plan(
            tuple(map(parse_address, nodes)), tuple(map(parse_address, seeds)), 1.0, lambda _: access, None, Jolokia
        )
        self.cluster = LiveCluster(plan, request, self._intervals.put)

    def __enter__(self) -> "Followed":
        self.cluster.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.cluster.stop()

    def until(self, condition: Callable[[ClusterInterval], bool]) -> ClusterInterval:
        """Return the first interval that meets the condition; fail after TIMEOUT_S."""
        deadline_s = time.monotonic() + TIMEOUT_S
        while True:
            interval = self._intervals.get(timeout=TIMEOUT_S)
            if condition(interval):
                return interval
            assert time.monotonic() < deadline_s, interval


@pytest.fixture
def agents() -> Iterator[FakeAgents]:
    running = FakeAgents(FakeAgent(FIRST), FakeAgent(SECOND))
    yield running
    running.close()


def node(interval: ClusterInterval, name: str) -> NodeStatus:
    return next(node for node in interval.nodes if node.name == name)


def test_samples_of_all_agents_are_merged(agents: FakeAgents) -> None:
    with Followed(FIRST, SECOND) as followed:
        interval = followed.until(
            lambda interval: interval.counted == 2 and all(node.info.location == "dc1/r1" for node in interval.nodes)
        )
        assert reads_per_s(interval.cluster) == 2000
        assert interval.name == "Fake"


def test_a_node_without_an_agent_is_gone_with_a_hint() -> None:
    with Followed(UNUSED) as followed:
        reason = f"no agent is listening at {UNUSED}:17199 (hint: run 'casstat agent' on that machine"
        interval = followed.until(lambda interval: interval.nodes[0].reason.startswith(reason))
        assert interval.nodes[0].state is State.GONE


def test_an_invalid_host_name_is_a_failure_of_its_node_and_other_peers_are_still_refreshed(
    monkeypatch: pytest.MonkeyPatch, agents: FakeAgents
) -> None:
    monkeypatch.setattr(live_cluster, "PEERS_INTERVAL_S", 0.2)
    names = ("node..example", "a" * 64)
    with Followed(*names, seeds=(FIRST,)) as followed:
        reason = "invalid host name (hint: check the agent's address)"
        interval = followed.until(lambda interval: all(node(interval, name).reason == reason for name in names))
        assert {node(interval, name).state for name in names} == {State.GONE}
        agents.agents[0].peers = [FIRST, SECOND]
        followed.until(lambda interval: SECOND in {node.name for node in interval.nodes})


FAULTS = {
    "response larger than 4 MiB": fake_agents.endless,
    "response head larger than 32 KiB": fake_agents.huge_head,
    "malformed HTTP response": fake_agents.not_http,
    "connection closed": fake_agents.hang_up,
}


def test_nodes_with_faulty_agents_are_gone_and_the_other_is_counted() -> None:
    faulty = {
        why: FakeAgent(f"127.0.{_NET}.{number}", behaviour) for number, (why, behaviour) in enumerate(FAULTS.items(), 4)
    }
    names = [agent.address for agent in faulty.values()]
    with closing(FakeAgents(FakeAgent(FIRST), *faulty.values())), Followed(FIRST, *names) as followed:
        interval = followed.until(
            lambda interval: (
                interval.counted == 1
                and all(why in node(interval, agent.address).reason for why, agent in faulty.items())
            )
        )
        assert {node(interval, name).state for name in names} == {State.GONE}
        assert reads_per_s(interval.cluster) == 1000
        for agent in faulty.values():
            agent.behaviour = fake_agents.healthy
        followed.until(lambda interval: interval.counted == 1 + len(names))


def test_a_listener_that_is_not_trusted_receives_nothing() -> None:
    access = Access("me", "secret", check_peer=lambda *_: "it belongs to user nobody")
    with socket.create_server((FIRST, 0)) as listener:
        with Followed(f"{FIRST}:{listener.getsockname()[1]}", access=access) as followed:
            interval = followed.until(lambda interval: "it belongs to user nobody" in interval.nodes[0].reason)
        stream, _ = listener.accept()
        with stream:
            assert stream.recv(1) == b""
    assert interval.nodes[0].state is State.GONE


def test_the_peers_of_a_seed_are_followed(agents: FakeAgents) -> None:
    agents.agents[0].peers = [FIRST, SECOND]
    with Followed(seeds=(FIRST,)) as followed:
        interval = followed.until(lambda interval: interval.counted == 2)
        assert [node.name for node in interval.nodes] == [FIRST, SECOND]


def test_nodes_are_counted_again_after_the_request_has_changed(agents: FakeAgents) -> None:
    with Followed(FIRST) as followed:
        followed.until(lambda interval: interval.counted == 1)
        followed.cluster.request(Request(("node_*",), frozenset({READS}), frozenset()))
        followed.until(lambda interval: interval.counted == 1)
        assert followed.until(lambda interval: interval.counted == 1).nodes[0].state is State.UP


@pytest.mark.parametrize("begins_well", [True, False])
def test_an_unexpected_error_is_a_failure_of_the_node_and_the_feed_continues(
    monkeypatch: pytest.MonkeyPatch, agents: FakeAgents, begins_well: bool
) -> None:
    def fail(_: object) -> Sample:
        raise KeyError("x")

    with Followed(FIRST) as followed:
        if begins_well:
            followed.until(lambda interval: interval.counted == 1)
        with monkeypatch.context() as patched:
            patched.setattr(feeds, "decoded", fail)
            # On a busy machine, the samples may first be late.
            reason = "unexpected KeyError: 'x'; this is a bug in casstat"
            interval = followed.until(lambda interval: interval.nodes[0].reason == reason)
            assert interval.nodes[0].state is State.GONE
        followed.until(lambda interval: interval.counted == 1)


def test_a_node_is_sampled_through_its_jolokia_agent_after_an_unexpected_error(monkeypatch: pytest.MonkeyPatch) -> None:
    report, failures = JolokiaFeed._report_node, [ValueError("x")]

    def fail_once(feed: JolokiaFeed, *arguments: Any) -> None:
        if failures:
            raise failures.pop()
        report(feed, *arguments)

    monkeypatch.setattr(JolokiaFeed, "_report_node", fail_once)
    with closing(FakeJolokia()) as fake, Followed(fake.url) as followed:
        text = "unexpected ValueError: x; this is a bug in casstat"
        followed.until(lambda interval: interval.nodes[0].reason == text)
        followed.until(lambda interval: interval.nodes[0].state is State.UP)

        def shows_reads(interval: ClusterInterval) -> bool:
            # Keep adding reads, because on a busy machine a sample may arrive too late to be counted.
            fake.node.do_reads(100)
            return bool(reads_per_s(interval.cluster))

        assert followed.until(shows_reads).counted == 1


def test_an_unexpected_error_while_peers_are_refreshed_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_cluster, "PEERS_INTERVAL_S", 0.2)
    with closing(FakeAgents(FakeAgent(FIRST))), Followed(seeds=(FIRST,)) as followed:
        followed.until(lambda interval: interval.counted == 1)
        monkeypatch.setattr(feeds, "node_info", {}.__getitem__)
        followed.until(lambda interval: "unexpected " in interval.nodes[0].reason)

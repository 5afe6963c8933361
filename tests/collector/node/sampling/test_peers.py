"""A node's list of peers is kept up to date, in whatever order gossip and the ring change."""

import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from itertools import permutations, repeat
from typing import Any

from collector.model.snapshot import Scrape, SourceError, Tick
from collector.node.host.cassandra_processes import NodeFacts
from collector.node.metrics.storage import members
from collector.node.node_sampler import NameOverrides, NodeSampler, Source
from collector.node.selection import Selection
from tests.collector.fakes import FakeClock
from tests.every import every

OWN, OLD, FIRST, SECOND = "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"
Change = Callable[["Cluster"], None]


class Cluster:
    """A node that counts the requests for its peers; tests change its gossip state and its ring."""

    name = kind = "fake"
    paced = False
    host = "203.0.113.9"

    def __init__(self, *addresses: str) -> None:
        self.gossip = set(addresses)
        self.ring = set(addresses)
        self.clock = FakeClock()
        self.members: frozenset[str] = frozenset()
        self.origin = "a"
        self.learned = 0
        self.peer_requests = 0
        self.fails = False

    @property
    def sources(self) -> Sequence[Source]:
        return [self]

    def learn(self, timeout_s: float) -> NodeFacts:
        self.learned += 1
        return NodeFacts(OWN, jvm="1@host", origin=self.origin, peers=tuple(sorted(self.ring)))

    def peers(self, timeout_s: float) -> tuple[str, ...]:
        self.peer_requests += 1
        if self.fails:
            raise SourceError("no answer")
        return tuple(sorted(self.ring))

    def read(self, timeout_s: float) -> Scrape:
        self.members = frozenset(self.gossip)
        return Scrape(self.name, self.clock.monotonic_s(), {}, self.origin)

    def provides(self, metric: str) -> bool:
        return True

    def tables(self) -> set[tuple[str, str]]:
        return set()

    def close(self) -> None:
        """Do nothing."""


def gossip_gains(address: str) -> Change:
    return lambda cluster: cluster.gossip.add(address)


def gossip_loses(address: str) -> Change:
    return lambda cluster: cluster.gossip.discard(address)


def ring_gains(address: str) -> Change:
    return lambda cluster: cluster.ring.add(address)


def ring_loses(address: str) -> Change:
    return lambda cluster: cluster.ring.discard(address)


def nothing(_: Cluster) -> None:
    """Leave the cluster unchanged."""


JOINS = gossip_gains(FIRST), ring_gains(FIRST), gossip_gains(SECOND), ring_gains(SECOND)
# A replacement leaves the number of nodes unchanged.
REPLACEMENT = gossip_gains(FIRST), ring_gains(FIRST), gossip_loses(OLD), ring_loses(OLD)


def run(cluster: Cluster, sampler: NodeSampler, *changes: Change, seconds: int = 0) -> None:
    """Tick once per second: first once after each change, then for `seconds` without further changes."""

    def ticks() -> Iterator[Tick]:
        for number, change in enumerate([*changes, *repeat(nothing, seconds)]):
            change(cluster)
            cluster.clock.busy(1.0)
            yield Tick(float(number))

    for _ in sampler.snapshots(ticks(), 1.0):
        pass


def sampler_of(cluster: Cluster) -> NodeSampler:
    return NodeSampler(cluster, Selection(frozenset()), NameOverrides(), cluster.clock)


def peers(sampler: NodeSampler) -> tuple[str, ...]:
    return sampler.facts.peers


@every("early", range(5))
@every(
    ("changes", "expected"),
    [(JOINS, (OWN, OLD, FIRST, SECOND)), (REPLACEMENT, (OWN, FIRST))],
)
def test_peers_match_the_ring_after_changes_in_any_order(
    changes: Sequence[Change], expected: tuple[str, ...], early: int
) -> None:
    for order in permutations(changes):
        cluster = Cluster(OWN, OLD)
        with closing(sampler_of(cluster)) as sampler:
            sampler.learn()
            for change in order[:early]:
                change(cluster)
            run(cluster, sampler, *order[early:], seconds=9)
            assert peers(sampler) == expected
            requests = cluster.peer_requests
            run(cluster, sampler, seconds=20)
            assert (cluster.peer_requests, cluster.learned) == (requests, 1)


def test_the_ring_may_change_minutes_after_gossip() -> None:
    cluster = Cluster(OWN)
    with closing(sampler_of(cluster)) as sampler:
        sampler.learn()
        run(cluster, sampler, gossip_gains(FIRST), gossip_gains(SECOND), seconds=300)
        run(cluster, sampler, ring_gains(FIRST), ring_gains(SECOND), seconds=61)
        assert peers(sampler) == (OWN, FIRST, SECOND)


def test_a_member_that_never_joins_the_ring_costs_one_request_per_minute() -> None:
    cluster = Cluster(OWN)
    with closing(sampler_of(cluster)) as sampler:
        sampler.learn()
        run(cluster, sampler, gossip_gains(FIRST), seconds=3600)
        assert cluster.peer_requests <= 6 + 60
        # A node that joins after an hour is still found.
        run(cluster, sampler, gossip_gains(SECOND), ring_gains(SECOND), seconds=2)
        assert peers(sampler) == (OWN, SECOND)


def test_without_changes_there_are_no_requests() -> None:
    cluster = Cluster(OWN, OLD)
    with closing(sampler_of(cluster)) as sampler:
        sampler.learn()
        run(cluster, sampler, seconds=600)
        assert (cluster.learned, cluster.peer_requests) == (1, 0)


def test_a_failed_request_keeps_the_peers_and_is_repeated() -> None:
    cluster = Cluster(OWN)
    with closing(sampler_of(cluster)) as sampler:
        sampler.learn()
        cluster.fails = True
        run(cluster, sampler, gossip_gains(FIRST), ring_gains(FIRST), seconds=10)
        assert peers(sampler) == (OWN,)
        cluster.fails = False
        run(cluster, sampler, seconds=60)
        assert peers(sampler) == (OWN, FIRST)


def test_a_restarted_node_finds_its_peers_again() -> None:
    cluster = Cluster(OWN, FIRST)
    with closing(sampler_of(cluster)) as sampler:
        sampler.learn()
        run(cluster, sampler, seconds=2)
        cluster.origin = "b"
        for change in (gossip_loses(FIRST), ring_loses(FIRST)):
            change(cluster)
        run(cluster, sampler, seconds=2)
        assert peers(sampler) == (OWN,)
        run(cluster, sampler, gossip_gains(FIRST), ring_gains(FIRST), seconds=4)
        assert peers(sampler) == (OWN, FIRST)
        assert cluster.learned == 2


@every(
    ("value", "expected"),
    [
        ({"LiveNodes": [OWN], "UnreachableNodes": [OLD]}, {OWN, OLD}),
        ({"LiveNodes": [OWN, None, 7, [OLD]], "UnreachableNodes": []}, {OWN}),
        ({"LiveNodes": [OWN]}, set()),
        ({"LiveNodes": OWN, "UnreachableNodes": "ERROR: no such attribute"}, set()),
        ([OWN], set()),
        (None, set()),
    ],
)
def test_members_are_live_and_unreachable_nodes_if_both_are_present(value: Any, expected: set[str]) -> None:
    assert members({"value": value}) == expected


def test_a_node_that_has_not_answered_has_the_name_of_its_own_machine() -> None:
    cluster, local = Cluster(OWN), Cluster(OWN)
    local.host = "127.0.0.1"
    with closing(sampler_of(cluster)) as sampler, closing(sampler_of(local)) as local_sampler:
        assert sampler.node == cluster.host
        assert local_sampler.node == socket.gethostname()
        sampler.learn()
        assert sampler.node == OWN
    overrides = NameOverrides(fallback_node="db1")
    with closing(NodeSampler(cluster, Selection(frozenset()), overrides, cluster.clock)) as sampler:
        assert sampler.node == "db1"

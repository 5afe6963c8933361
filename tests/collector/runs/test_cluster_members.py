"""Which members of their clusters the nodes of a run are, and which are not recorded."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import pytest

from collector.runs import cluster_members
from collector.runs.cluster_members import Membership, member_texts
from collector.runs.run import RunCluster
from tests.every import every


def clusters_of(
    memberships: Sequence[Membership], hosts: Mapping[str, Collection[str]] | None = None
) -> tuple[RunCluster, ...]:
    """Return the clusters of a run whose agents have the names of their nodes as addresses."""
    names = {name: name for name in (*(membership.agent for membership in memberships), *(hosts or {}))}
    return cluster_members.clusters_of(memberships, names, hosts or {})


def member(number: int, members: int, cluster: str = "prod", network: str = "10.0.0") -> Membership:
    """Return what a node of a cluster with `members` nodes knows."""
    peers = frozenset(f"{network}.{other}" for other in range(1, members + 1))
    return Membership(f"n{number}", f"{network}.{number}", cluster, peers)


def test_members_that_are_not_nodes_of_the_run_are_unrecorded() -> None:
    clusters = clusters_of([member(1, 2)])
    assert clusters == (RunCluster("prod", ("n1",), ("10.0.0.2",)),)
    assert member_texts(clusters) == ["1 of 2 nodes of the cluster prod recorded, not 10.0.0.2"]


def test_a_completely_recorded_cluster_is_not_mentioned() -> None:
    clusters = clusters_of([member(number, 3) for number in (1, 2, 3)])
    assert clusters == (RunCluster("prod", ("n1", "n2", "n3")),)
    assert member_texts(clusters) == []


def test_nodes_of_a_cluster_may_know_different_members_for_a_while() -> None:
    # The third node joins during the run, so the second answer of the first node contains it.
    assert clusters_of([member(1, 2), member(2, 2), member(1, 3), member(2, 2)]) == (
        RunCluster("prod", ("n1", "n2"), ("10.0.0.3",)),
    )
    # A node may know only itself when it starts.
    assert clusters_of([Membership("n2", "10.0.0.2", "prod", frozenset(["10.0.0.2"])), member(1, 2)]) == (
        RunCluster("prod", ("n1", "n2")),
    )


def test_two_clusters_are_told_apart_even_if_their_names_are_equal() -> None:
    clusters = clusters_of([member(1, 1), member(2, 2, network="10.0.1"), member(1, 1)])
    assert clusters == (RunCluster("prod", ("n1",)), RunCluster("prod", ("n2",), ("10.0.1.1",)))
    assert member_texts(clusters) == [
        "1 of 2 nodes of the cluster prod recorded, not 10.0.1.1",
        "the nodes belong to 2 clusters, and all figures cover them together: prod (n1), prod (n2)",
    ]
    # Two clusters in containers may use the same addresses.
    assert len(clusters_of([member(1, 2, "a"), member(2, 2, "b")])) == 2


def test_nodes_that_do_not_know_their_address_are_recognised_by_the_one_in_use() -> None:
    silent = Membership("n2", "", "", frozenset())
    hosts = {"n2": ["10.0.0.2"]}
    assert clusters_of([member(1, 2), silent], hosts) == (RunCluster("prod", ("n1", "n2")),)
    assert clusters_of([silent], hosts) == ()
    (text,) = member_texts(clusters_of([member(1, 3), silent], hosts))
    assert text == "2 of 3 nodes of the cluster prod recorded, not 10.0.0.3"


def test_many_members_are_counted() -> None:
    (text,) = member_texts(clusters_of([member(1, 9)]))
    assert (
        text
        == "1 of 9 nodes of the cluster prod recorded, not 10.0.0.2, 10.0.0.3, 10.0.0.4, 10.0.0.5, 10.0.0.6 and 3 more"
    )


@pytest.mark.parametrize("order", [1, -1])
def test_an_unknown_cluster_name_is_that_of_the_cluster_with_the_same_members(order: int) -> None:
    # The name is unknown for a while after Cassandra starts.
    unknown = member(2, 2, cluster="")
    assert clusters_of([member(1, 2), unknown][::order]) == (RunCluster("prod", ("n1", "n2")),)
    assert clusters_of([unknown, member(1, 2), replace(unknown, peers=frozenset())][::order]) == (
        RunCluster("prod", ("n1", "n2")),
    )
    # It does not connect two clusters that use the same addresses.
    named = [member(1, 2, "a"), replace(member(2, 2, "b"), agent="m2")]
    assert [cluster.name for cluster in clusters_of([*named, unknown][::order])] == ["b", "a"]
    # A name from before the start is that of the node.
    assert len(clusters_of([member(1, 2, "a"), member(2, 2, "b"), unknown])) == 2


def test_a_node_has_the_name_that_it_has_in_the_run_whatever_it_was_before() -> None:
    memberships = [member(1, 2), Membership("n2", "", "", frozenset()), member(1, 2), member(2, 2)]
    names = {"n1": "10.0.0.1", "n2": "10.0.0.2"}
    assert cluster_members.clusters_of(memberships, names) == (RunCluster("prod", ("10.0.0.1", "10.0.0.2")),)


def test_equal_addresses_are_recognised_in_any_form() -> None:
    full = [f"2001:db8:0:0:0:0:0:{number}" for number in (1, 2)]
    n1 = Membership("n1", full[0], "prod", frozenset(full))
    n2 = Membership("n2", "2001:DB8::2", "prod", frozenset(["2001:db8::1", "2001:db8::2"]))
    complete = (RunCluster("prod", ("n1", "n2")),)
    assert clusters_of([n1, n2]) == complete
    for host in ("2001:db8::2", "2001:0db8::0002", full[1], "[2001:db8::2]"):
        assert clusters_of([n1], {"n2": [host]}) == complete
    assert clusters_of([member(1, 2)], {"n2": ["::ffff:10.0.0.2"]}) == complete
    assert clusters_of([Membership("n1", "DB1.example", "prod", frozenset(["db1.example", "db2.example"]))]) == (
        RunCluster("prod", ("n1",), ("db2.example",)),
    )


def test_a_node_at_an_unknown_address_is_one_of_the_members_and_not_another() -> None:
    silent = {"db2": ["192.0.2.2"]}
    (cluster,) = clusters_of([member(1, 2)], silent)
    assert cluster == RunCluster("prod", ("n1",), ("10.0.0.2",), unidentified=("db2",))
    assert (cluster.missing, member_texts([cluster])) == (0, [])
    (cluster,) = clusters_of([member(1, 3)], silent)
    assert cluster.missing == 1
    assert member_texts([cluster]) == ["2 of 3 nodes of the cluster prod recorded, not all of 10.0.0.2, 10.0.0.3"]
    # Another node than the members.
    assert [cluster.missing for cluster in clusters_of([member(1, 1)], silent)] == [0]
    # It may be a node of either cluster.
    clusters = clusters_of([member(1, 2, "a"), member(2, 2, "b")], silent)
    assert [cluster.unidentified for cluster in clusters] == [(), ()]


def test_a_node_that_states_members_without_its_own_address_is_one_of_them() -> None:
    starting = replace(member(2, 2), address="")
    (cluster,) = clusters_of([member(1, 2), starting])
    assert (cluster.nodes, cluster.unidentified, cluster.missing) == (("n1",), ("n2",), 0)
    assert clusters_of([member(1, 2), starting], {"n2": ["10.0.0.2"]}) == (RunCluster("prod", ("n1", "n2")),)
    # A node that joins states its own address before it knows the ring.
    joining = Membership("n3", "10.0.0.3", "prod", frozenset())
    assert clusters_of([member(1, 3), member(2, 3), joining]) == (RunCluster("prod", ("n1", "n2", "n3")),)
    (cluster,) = clusters_of([member(1, 2), joining])
    assert (cluster.missing, cluster.unidentified) == (1, ())


def test_a_node_with_two_agents_is_one_member() -> None:
    second = replace(member(1, 2), agent="extra")
    (cluster,) = clusters_of([member(1, 2), second])
    assert (cluster.nodes, cluster.unrecorded) == (("extra",), ("10.0.0.2",))
    assert member_texts([cluster]) == ["1 of 2 nodes of the cluster prod recorded, not 10.0.0.2"]
    # Two different nodes may have the same name.
    names = {"n1": "node", "n2": "node"}
    assert cluster_members.clusters_of([member(1, 2), member(2, 2)], names) == (RunCluster("prod", ("node", "node")),)


def ring(agent: int, *members: int, answers: bool = True) -> Membership:
    peers = frozenset(f"10.0.0.{other}" for other in members)
    return Membership(f"n{agent}", f"10.0.0.{agent}", "prod", peers, answers=answers)


@every(
    ("memberships", "unrecorded", "text"),
    [
        # One node leaves, and another joins: there are never more than three.
        (
            [ring(1, 1, 2, 3), ring(2, 1, 2, 3), ring(1, 1, 2, 4), ring(2, 1, 2, 4)],
            (1, ("10.0.0.4",), ("10.0.0.3",)),
            "2 of 3 nodes of the cluster prod recorded, not 10.0.0.4, and 1 that left",
        ),
        (
            [ring(1, 1, 2), ring(1, 1, 3)],
            (1, ("10.0.0.3",), ("10.0.0.2",)),
            "1 of 2 nodes of the cluster prod recorded, not 10.0.0.3, and 1 that left",
        ),
        (
            [ring(1, 1, 2), ring(1, 1)],
            (1, (), ("10.0.0.2",)),
            "1 of 2 nodes of the cluster prod recorded, not 10.0.0.2, which left",
        ),
        (
            [ring(1, 1, 2, 3), ring(1, 1, 4)],
            (2, ("10.0.0.4",), ("10.0.0.2", "10.0.0.3")),
            "1 of 3 nodes of the cluster prod recorded, not 10.0.0.4, and 2 that left",
        ),
        # A node that was killed still lists the members of before.
        (
            [ring(1, 1, 2, 3), ring(2, 1, 2, 3), ring(1, 1, 2), ring(2, 1, 2, 3, answers=False)],
            (1, (), ("10.0.0.3",)),
            "2 of 3 nodes of the cluster prod recorded, not 10.0.0.3, which left",
        ),
        # So does one whose agent was killed with it.
        (
            [ring(1, 1, 2, 3), ring(2, 1, 2, 3), ring(1, 1, 2), Membership("n2", "", "", frozenset())],
            (1, (), ("10.0.0.3",)),
            "2 of 3 nodes of the cluster prod recorded, not 10.0.0.3, which left",
        ),
    ],
)
def test_members_that_left_do_not_count_in_addition_to_those_at_the_end(
    memberships: list[Membership], unrecorded: tuple[int, tuple[str, ...], tuple[str, ...]], text: str
) -> None:
    (cluster,) = clusters_of(memberships)
    assert (cluster.missing, cluster.unrecorded, cluster.left) == unrecorded
    assert member_texts([cluster]) == [text]


def test_a_recorded_node_that_leaves_or_changes_its_address_is_recorded() -> None:
    assert clusters_of([ring(1, 1, 2), ring(2, 1, 2), ring(1, 1), ring(2, 1)]) == (RunCluster("prod", ("n1", "n2")),)
    moved = replace(ring(9, 9), agent="n1")
    assert clusters_of([ring(1, 1), moved]) == (RunCluster("prod", ("n1",)),)
    # A node that is killed and has no other member to contradict it.
    assert clusters_of([ring(1, 1, 2), ring(1, 1, 2, answers=False)]) == (RunCluster("prod", ("n1",), ("10.0.0.2",)),)

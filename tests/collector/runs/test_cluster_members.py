"""Which members of their clusters the nodes of a run are, and which are not recorded."""

from collector.runs.cluster_members import Membership, clusters_of, member_texts
from collector.runs.run import RunCluster


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
    hosts = {"10.0.0.2": "n2"}
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

"""The clusters of a run's nodes, and which of their members the run does not record.

A cluster's members are the nodes in its ring, as each recorded node knows it: those of all data centres, those that are
down, and those that join during the run. A decommissioned node has left the ring.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from collector.printable import one_line
from collector.runs.run import RunCluster


@dataclass(frozen=True)
class Membership:
    """What a node of a run knows about its cluster.

    node     the node's name in the run.
    address  its own address in the ring; "" if it is unknown.
    cluster  the cluster's name; "" if it is unknown.
    peers    the addresses of all members; empty if they are unknown.
    """

    node: str
    address: str
    cluster: str
    peers: frozenset[str]


def clusters_of(
    memberships: Iterable[Membership], hosts: Mapping[str, str] = MappingProxyType({})
) -> tuple[RunCluster, ...]:
    """Return the clusters of the nodes in `memberships`, in the order of their first nodes.

    Clusters may have the same name, so nodes belong to the same one only if they also have a member in common. `hosts`
    contains the addresses and the names of those nodes of the run that do not know their address, because Cassandra has
    not answered.
    """
    groups: list[list[Membership]] = []
    for membership in memberships:
        if not membership.peers:
            continue
        same = [group for group in groups if _is_same(group, membership)]
        groups = [group for group in groups if group not in same]
        groups.append([*(known for group in same for known in group), membership])
    clusters = [_cluster(group, hosts) for group in groups]
    return tuple(sorted(clusters, key=lambda cluster: cluster.nodes))


def _is_same(group: Sequence[Membership], membership: Membership) -> bool:
    return any(
        known.node == membership.node or (known.cluster == membership.cluster and known.peers & membership.peers)
        for known in group
    )


def _cluster(group: Sequence[Membership], hosts: Mapping[str, str]) -> RunCluster:
    members = frozenset().union(*(membership.peers for membership in group))
    recorded = {membership.address for membership in group} | hosts.keys()
    names = sorted({membership.node for membership in group} | {hosts[host] for host in members & hosts.keys()})
    cluster = next((membership.cluster for membership in group if membership.cluster), "")
    return RunCluster(cluster, tuple(names), tuple(sorted(members - recorded)))


MAX_LISTED = 5
"""How many members a text lists."""


def member_texts(clusters: Sequence[RunCluster]) -> list[str]:
    """Return a text for each cluster of which only some nodes are recorded, and one if there are several clusters."""
    texts = []
    for cluster in clusters:
        if cluster.unrecorded:
            members = len(cluster.nodes) + len(cluster.unrecorded)
            others = ", ".join(map(one_line, cluster.unrecorded[:MAX_LISTED]))
            more = f" and {len(cluster.unrecorded) - MAX_LISTED} more" if len(cluster.unrecorded) > MAX_LISTED else ""
            name = f" of the cluster {one_line(cluster.name)}" if cluster.name else ""
            texts.append(f"{len(cluster.nodes)} of {members} nodes{name} recorded, not {others}{more}")
    if len(clusters) > 1:
        parts = (
            f"{one_line(cluster.name) or 'unknown'} ({', '.join(map(one_line, cluster.nodes[:MAX_LISTED]))})"
            for cluster in clusters
        )
        texts.append(
            f"the nodes belong to {len(clusters)} clusters, and all figures cover them together: {', '.join(parts)}"
        )
    return texts

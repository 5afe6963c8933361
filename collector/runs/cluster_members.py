"""The clusters of a run's nodes, and which of their members the run does not record.

A cluster's members are the nodes in its ring, as each recorded node knows it: those of all data centres, those that are
down, and those that join during the run. A decommissioned node has left the ring.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_address
from types import MappingProxyType

from collector.printable import one_line
from collector.runs.run import RunCluster


@dataclass(frozen=True)
class Membership:
    """What a node of a run states about its cluster at one time.

    agent    the address of the node's agent, which identifies the node in the run.
    address  the node's own address in the ring; "" if it is unknown.
    cluster  the cluster's name; "" if it is unknown, as it is while Cassandra starts.
    peers    the addresses of all members; empty if they are unknown.
    answers  whether Cassandra answered at that time; otherwise, the statement is from before.
    """

    agent: str
    address: str
    cluster: str
    peers: frozenset[str]
    answers: bool = True


@dataclass(frozen=True)
class _Node:
    """A node of a run.

    stated      its memberships with peers, the latest last.
    cluster     the name of its cluster; "" if it never stated one.
    own         its own addresses, as it stated them.
    reached     the addresses at which it is reached, which may be those in the ring.
    is_current  whether it answered when it was last asked, so that it lists no members that have left before.
    """

    name: str
    stated: tuple[Membership, ...]
    cluster: str
    own: frozenset[str]
    reached: frozenset[str]
    is_current: bool

    @property
    def members(self) -> frozenset[str]:
        return _peers(self.stated)

    def addresses(self, members: frozenset[str]) -> frozenset[str]:
        """Return the node's addresses in a ring with these members; empty if they cannot be determined."""
        if self.own and self.stated:
            return self.own
        return (self.own or self.reached) & members


def clusters_of(
    memberships: Iterable[Membership],
    names: Mapping[str, str],
    hosts: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> tuple[RunCluster, ...]:
    """Return the clusters of a run's nodes, in the order of their first nodes.

    memberships  what the nodes state, the latest statements last.
    names        the names of all nodes of the run, by the addresses of their agents.
    hosts        the addresses at which nodes are reached that do not state their own, because Cassandra never answered.

    Clusters may have the same name, so nodes belong to the same one only if they also have a member in common. A node
    without a known cluster name belongs to the cluster with which it has members in common.
    """
    stated: dict[str, list[Membership]] = {agent: [] for agent in names}
    for membership in memberships:
        if membership.agent in stated:
            stated[membership.agent].append(_canonical(membership))
    nodes = [_node(names[agent], of_node, hosts.get(agent, ())) for agent, of_node in stated.items()]
    groups: list[list[_Node]] = []
    # A node without a known cluster name must not connect two clusters that use the same addresses.
    for node in sorted((node for node in nodes if node.stated), key=lambda node: not node.cluster):
        same = [group for group in groups if any(_are_together(node, other) for other in group)]
        same = [group for group in same if group[0].cluster == same[0][0].cluster]
        groups = [group for group in groups if group not in same]
        groups.append([*(other for group in same for other in group), node])
    silent = [node for node in nodes if not node.stated]
    members = _peers(membership for node in nodes for membership in node.stated)
    unidentified = [node for node in silent if not node.own and not node.addresses(members)]
    clusters = [_cluster(group, silent, unidentified if len(groups) == 1 else ()) for group in groups]
    return tuple(sorted(clusters, key=lambda cluster: (cluster.nodes, cluster.unidentified)))


def _canonical(membership: Membership) -> Membership:
    address = canonical_address(membership.address)
    return replace(membership, address=address, peers=frozenset(map(canonical_address, membership.peers)))


def canonical_address(text: str) -> str:
    """Return an address, or a host name, in the one form in which equal ones are equal texts."""
    text = text.strip("[]")
    try:
        address = ip_address(text)
    except ValueError:
        return text.lower().rstrip(".")
    return str(getattr(address, "ipv4_mapped", None) or address)


def _node(name: str, memberships: Sequence[Membership], hosts: Collection[str]) -> _Node:
    stated = tuple(membership for membership in memberships if membership.peers)
    cluster = next((membership.cluster for membership in reversed(memberships) if membership.cluster), "")
    own = {membership.address for membership in memberships if membership.address}
    is_current = bool(stated) and memberships[-1] is stated[-1] and stated[-1].answers
    return _Node(name, stated, cluster, frozenset(own), frozenset(map(canonical_address, hosts)), is_current)


def _peers(memberships: Iterable[Membership]) -> frozenset[str]:
    return frozenset(peer for membership in memberships for peer in membership.peers)


def _are_together(node: _Node, other: _Node) -> bool:
    is_named_alike = node.cluster == other.cluster or not node.cluster or not other.cluster
    return is_named_alike and bool(node.members & other.members)


def _cluster(group: Sequence[_Node], silent: Sequence[_Node], unidentified: Sequence[_Node]) -> RunCluster:
    """Return the cluster of the nodes in `group`.

    silent        nodes that never stated the members of their cluster.
    unidentified  those of them that may be any member.
    """
    current = [node for node in group if node.is_current] or group
    members = _peers(node.stated[-1] for node in current)
    ever = _peers(membership for node in group for membership in node.stated)
    names: list[str] = []
    recorded: set[str] = set()
    unknown = list(unidentified)
    for node in sorted((*group, *silent), key=lambda node: node.name):
        addresses = node.addresses(ever)
        if not addresses:
            unknown += [node] if node.stated else []
        elif not addresses & recorded:
            # Otherwise, it is recorded through another agent as well.
            names.append(node.name)
        recorded |= addresses
    return RunCluster(
        next((node.cluster for node in group if node.cluster), ""),
        tuple(names),
        tuple(sorted(members - recorded)),
        tuple(sorted(ever - members - recorded)),
        tuple(sorted(node.name for node in unknown)),
    )


MAX_LISTED = 5
"""How many members a text lists."""


def member_texts(clusters: Sequence[RunCluster]) -> list[str]:
    """Return a text for each cluster of which only some nodes are recorded, and one if there are several clusters."""
    texts = [_unrecorded_text(cluster) for cluster in clusters if cluster.missing]
    if len(clusters) > 1:
        parts = (
            f"{one_line(cluster.name) or 'unknown'} ({', '.join(map(one_line, cluster.nodes[:MAX_LISTED]))})"
            for cluster in clusters
        )
        texts.append(
            f"the nodes belong to {len(clusters)} clusters, and all figures cover them together: {', '.join(parts)}"
        )
    return texts


def _unrecorded_text(cluster: RunCluster) -> str:
    recorded = len(cluster.nodes) + len(cluster.unidentified)
    name = f" of the cluster {one_line(cluster.name)}" if cluster.name else ""
    others = cluster.unrecorded or cluster.left
    listed = ", ".join(map(one_line, others[:MAX_LISTED]))
    if len(others) > MAX_LISTED:
        listed += f" and {len(others) - MAX_LISTED} more"
    if cluster.unidentified:
        listed = f"all of {listed}"
    if cluster.left:
        listed += f", and {len(cluster.left)} that left" if cluster.unrecorded else ", which left"
    return f"{recorded} of {recorded + cluster.missing} nodes{name} recorded, not {listed}"

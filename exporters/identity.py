"""Who a node is, as every series of it says: its name, and its place in the cluster as the node itself tells it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from collector.model.snapshot import Snapshot

# The metric that tells it, and what it is called as a label.
TOLD = {
    ("cassandra_cluster_name",): "cluster",
    ("cassandra_datacenter",): "dc",
    ("cassandra_rack",): "rack",
}


@dataclass(frozen=True)
class Identity:
    """A node's labels; "" for what is not known (yet)."""

    cluster: str = ""
    dc: str = ""
    rack: str = ""
    node: str = ""

    def told(self, snapshot: Snapshot) -> "Identity":
        """Return who the node is after a snapshot: most of them say nothing new. Under another name it is another."""
        found = {
            label: str(scrape.values[series])
            for scrape in snapshot.scrapes
            for series, label in TOLD.items()
            if series in scrape.values
        }
        before = self if self.node in ("", snapshot.node) else Identity()
        told = replace(before, node=snapshot.node, **found)
        return self if told == self else told

    def labels(self) -> Mapping[str, str]:
        """Return what is known, in the order in which it is written."""
        every = {"cluster": self.cluster, "dc": self.dc, "rack": self.rack, "node": self.node}
        return {label: value for label, value in every.items() if value}

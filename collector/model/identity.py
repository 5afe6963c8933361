"""A node's identity: its name, cluster, data centre and rack, which are the labels of its series."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from collector.model.metric import Series
from collector.model.snapshot import Snapshot

IDENTITY_LABELS: Mapping[Series, str] = {
    ("cassandra_cluster_name",): "cluster",
    ("cassandra_datacenter",): "dc",
    ("cassandra_rack",): "rack",
}
"""Maps each series that provides a label's value to the label's name."""


@dataclass(frozen=True)
class Identity:
    """A node's labels; "" for a label that is not known yet."""

    cluster: str = ""
    dc: str = ""
    rack: str = ""
    node: str = ""

    def after(self, snapshot: Snapshot) -> "Identity":
        """Return the identity updated from a snapshot; `self` if nothing has changed.

        If the snapshot has a different node name, the previous labels are discarded.
        """
        labels = {
            label: str(scrape.values[series])
            for scrape in snapshot.scrapes
            for series, label in IDENTITY_LABELS.items()
            if series in scrape.values
        }
        base = self if self.node in ("", snapshot.node) else Identity()
        updated = replace(base, node=snapshot.node, **labels)
        return self if updated == self else updated

    def labels(self) -> Mapping[str, str]:
        """Return the known labels, in output order."""
        labels = {"cluster": self.cluster, "dc": self.dc, "rack": self.rack, "node": self.node}
        return {label: value for label, value in labels.items() if value}

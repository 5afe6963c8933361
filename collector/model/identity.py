"""A node's identity (its name, cluster, data centre and rack, which are labels of its series), and where it runs."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from collector.model.metric import Metric, Owner, Series
from collector.model.snapshot import Snapshot

IDENTITY_LABELS: Mapping[Series, str] = {
    ("cassandra_cluster_name",): "cluster",
    ("cassandra_datacenter",): "dc",
    ("cassandra_rack",): "rack",
}
"""Maps each series that provides a label's value to the label's name."""
WATCHED = "watched"
"""The label that replaces the names of a node's watched disk and interface, which differ between machines."""


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


@dataclass(frozen=True)
class Placement:
    """Where a node runs. Nodes on the same machine all report that machine's series.

    machine    the machine's boot id; "" if unknown, in which case nothing is shared.
    network    the network namespace on that machine.
    disk       the disk labelled WATCHED in the node's samples; `interface` is the network interface with that label.
    """

    machine: str = ""
    network: str = ""
    disk: str = ""
    interface: str = ""

    def shared(self, metric: Metric | None, series: Series) -> Series:
        """Return a key that is equal for all nodes that share the series; () for a series that is not shared."""
        if not self.machine or metric is None or metric.owner is Owner.NODE:
            return ()
        is_network = metric.owner is Owner.NETWORK
        if series[1:] == (WATCHED,):
            series = (series[0], self.interface if is_network else self.disk)
        return (self.machine, self.network if is_network else "", *series)


NOWHERE = Placement()

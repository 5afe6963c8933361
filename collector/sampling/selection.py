"""What of a node is wanted: which metrics, keyspaces and tables, and how often each is read."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from collector.cassandra.tables import EVERY_TICK, REMAINDERS, is_system_keyspace
from collector.jolokia.mbean import MBean
from collector.model.metric import Metric, ScrapeInterval

DEFAULT_TABLES = 10
"""How many of the most active tables are read, where tables are wanted at all."""

Table = tuple[str, str]
"""A keyspace and a table of it."""


def slowest_interval(metric: Metric) -> ScrapeInterval:
    """Return how rarely a metric may be read where no keyspace or table is named.

    Operations of keyspaces, and with them those of all tables beyond the busiest, are read every ten seconds.
    """
    if metric.name in REMAINDERS or metric.name in REMAINDERS.values():
        return ScrapeInterval.OFTEN
    if "keyspace" not in metric.labels or metric.name in EVERY_TICK:
        return metric.scrape_interval
    return max(metric.scrape_interval, ScrapeInterval.SLOW, key=lambda scrape_interval: scrape_interval.value)


def is_pattern(name: str) -> bool:
    """Return whether a name may stand for several."""
    return any(letter in name for letter in "*?[")


@dataclass(frozen=True)
class Selection:
    """What of the catalogue is wanted.

    metrics   by name; None for all.
    keyspace  only keyspaces of this name or pattern (`ks*`); "" for all but Cassandra's own.
    table     tables of these keyspaces, by name or pattern, that are read whole and in every tick.
    tables    of the others, how many are read: those with the most reads and writes.
    hourly    whether to read, once an hour, what touches the node's disk.
    """

    metrics: frozenset[str] | None = None
    keyspace: str = ""
    table: str = ""
    tables: int = 0
    hourly: bool = False

    def includes(self, keyspace: str) -> bool:
        """Return whether the keyspace is one of those wanted."""
        return fnmatchcase(keyspace, self.keyspace) if self.keyspace else not is_system_keyspace(keyspace)

    def names(self, keyspace: str, table: str) -> bool:
        """Return whether the table is one of those named."""
        return bool(self.table) and fnmatchcase(table, self.table) and self.includes(keyspace)

    def scrape_interval(
        self, bean: MBean, labels: Mapping[str, str], active: Collection[Table] = ()
    ) -> ScrapeInterval | None:
        """Return how often to read this, or None for never; `active` are the tables read beside the named ones."""
        scrape_interval = bean.metric.scrape_interval
        if self.metrics is not None and bean.metric.name not in self.metrics:
            return None
        if scrape_interval is ScrapeInterval.HOURLY and not self.hourly:
            return None
        keyspace, table = labels.get("keyspace"), labels.get("table")
        if keyspace is None:
            return scrape_interval
        if not self.includes(keyspace):
            return None
        if table is None and not self.keyspace:
            return ScrapeInterval.OFTEN if bean.metric.name in REMAINDERS else ScrapeInterval.SLOW
        if table is None or self.names(keyspace, table):
            return scrape_interval
        if (keyspace, table) not in active:
            return None
        return (
            scrape_interval
            if bean.metric.name in EVERY_TICK
            else max(scrape_interval, ScrapeInterval.SLOW, key=lambda each: each.value)
        )

"""The metrics, keyspaces and tables to read, and how often to read each."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from collector.model.mbean import MBean
from collector.model.metric import Metric, ScrapeInterval
from collector.node.metrics.tables import EVERY_TICK, REMAINDERS, is_system_keyspace

DEFAULT_TABLES = 10
"""The number of tables that are read by default: the most active ones."""

Table = tuple[str, str]
"""The names of a keyspace and one of its tables; the table is "" for the keyspace itself."""


def slowest_interval(metric: Metric) -> ScrapeInterval:
    """Return the longest scrape interval that a metric has if no keyspace or table is selected by name.

    The keyspaces' operation counters are read every ten seconds, because the totals for all less active tables are
    derived from them.
    """
    if metric.name in REMAINDERS or metric.name in REMAINDERS.values():
        return ScrapeInterval.OFTEN
    if "keyspace" not in metric.labels or metric.name in EVERY_TICK:
        return metric.scrape_interval
    return ScrapeInterval.SLOW


def is_pattern(name: str) -> bool:
    """Return whether a name contains wildcards."""
    return any(letter in name for letter in "*?[")


@dataclass(frozen=True)
class Selection:
    """The part of the catalogue to read.

    metrics   metric names; None for all.
    keyspace  keyspace name, or a pattern such as `ks*`; "" for all except system keyspaces.
    table     table name or pattern within these keyspaces; matching tables are read at each metric's scrape interval.
    tables    number of tables to read in addition: those with the most reads and writes.
    """

    metrics: frozenset[str] | None = None
    keyspace: str = ""
    table: str = ""
    tables: int = 0

    def includes(self, keyspace: str) -> bool:
        return fnmatchcase(keyspace, self.keyspace) if self.keyspace else not is_system_keyspace(keyspace)

    def names(self, keyspace: str, table: str) -> bool:
        """Return whether the table is selected by name or pattern."""
        return bool(self.table) and fnmatchcase(table, self.table) and self.includes(keyspace)

    def scrape_interval(
        self, bean: MBean, labels: Mapping[str, str], active: Collection[Table]
    ) -> ScrapeInterval | None:
        """Return the scrape interval of a selected MBean with the given labels, or None to skip it.

        `active` holds the most active tables, which are read in addition to the named ones.
        """
        scrape_interval = bean.metric.scrape_interval
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
        return scrape_interval if bean.metric.name in EVERY_TICK else ScrapeInterval.SLOW

"""Rows of a merged run: the columns of the line's wide view, of every node and of all of them together."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import isfinite

from collector.catalogue import CATALOGUE
from collector.cluster import NAME, WATCHED
from collector.merging.merge import NodeRun
from collector.merging.together import Together
from collector.model import Kind, Sample, Series, Tick
from exporters.columns import PENDING, Cell, times
from exporters.operations import Operations
from exporters.view import View, interval_s, told

OPERATIONS = (("Read", "reads"), ("Write", "writes"))
Row = dict[str, Cell]
# Of a run without a node, for the names of the columns alone.
NEVER = Tick(0.0)


@dataclass(frozen=True)
class Choice:
    """Which reads and writes the rows are about (see `Operations`)."""

    keyspace: str = ""
    table: str = ""
    local: bool = False


@dataclass(frozen=True)
class Table:
    """The columns of a merged run."""

    view: View

    @cached_property
    def gauges(self) -> Mapping[str, tuple[Series, float]]:
        """The columns that show gauges, by name: of which series, and times what."""
        gauges = [metric for metric in CATALOGUE.values() if metric.kind is Kind.GAUGE]
        shown = {each.name: ((metric.name, *each.labels), each.scale) for metric in gauges for each in metric.shown}
        return {"compactions_pending": (PENDING, 1.0), **shown}

    @cached_property
    def needs(self) -> frozenset[str | Series]:
        """What the columns are made of: metrics, and single series of others."""
        columns = self.view.columns
        alone = {column.alone for column in columns if column.alone}
        return self.view.metrics(column for column in columns if not column.alone) | alone

    @cached_property
    def header(self) -> list[str]:
        """The names of the columns."""
        return list(self.row(NAME, Sample("", NEVER, {}, {}), 0, 0, ("", "")))

    def cluster_row(self, found: Together, nodes: int) -> Row:
        """Return the row of all `nodes` together in an interval."""
        return self.row(NAME, found.sample, found.answered, nodes - found.answered, ("", ""))

    def node_rows(self, node: NodeRun) -> Iterator[tuple[int, Row]]:
        """Yield the intervals of one node, and the row of each."""
        head = node.head
        for place, found in node.bins.items():
            answered = int(any(source in found.sample.elapsed_s for source in head.sources))
            yield place, self.row(node.node, found.sample, answered, 1 - answered, (head.disk, head.interface))

    def row(self, name: str, sample: Sample, answered: int, missing: int, devices: tuple[str, str]) -> Row:
        """Return one row: of the `answered` nodes that it is made of, `missing` being how many are not in it."""
        cells: Row = {
            "time": _rounded(sample.tick.time_s),
            "node": name,
            "interval_s": _rounded(interval_s(sample), 6),
            "nodes": answered,
            "nodes_missing": missing,
        }
        for operation, word in OPERATIONS:
            cells[word] = _rounded(self.view.operations.gained(sample, operation))
        gauges = self.gauges
        for column in self.view.columns:
            name = column.name
            if name == "disk_reads_per_s":
                cells["disk"] = devices[0] or None
            if name == "net_rx_kbit_per_s":
                cells["net_interface"] = devices[1] or None
            cells[name] = _rounded(column.of(sample))
            if name in gauges:
                series, scale = gauges[name]
                least, most = sample.spread.get(series, (None, None))
                cells[f"min_{name}"] = _rounded(times(scale, least))
                cells[f"max_{name}"] = _rounded(times(scale, most))
        cells["percentiles"] = "decayed" if self.view.operations.is_decayed(sample) else "interval"
        cells["late_ms"] = _rounded(1000 * sample.tick.late_s)
        cells["events"] = told(sample) or None
        return cells


@lru_cache(maxsize=4)
def table_of(choice: Choice) -> Table:
    """Return the columns for a choice."""
    operations = Operations(choice.keyspace, choice.table, local=choice.local)
    return Table(View(operations, disk=WATCHED, interface=WATCHED, wide=True))


def _rounded(value: Cell, digits: int = 4) -> Cell:
    if not isinstance(value, float):
        return value
    if not isfinite(value):
        return None
    if value.is_integer():
        return int(value)
    rounded = round(value, digits)
    return int(rounded) if rounded.is_integer() else rounded

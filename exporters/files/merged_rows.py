"""Rows of a merged run: the columns of the line's wide view, of every node and of all of them together."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

from collector.cluster.aggregation import NAME, WATCHED
from collector.cluster.cluster_sample import ClusterSample
from collector.cluster.merge_job import NodeRun
from collector.model.metric import Series
from collector.model.sample import Sample
from collector.model.snapshot import Tick
from exporters.line.cells import cells_with_ends, rounded
from exporters.line.columns import DISK, INTERFACE, Cell
from exporters.line.operation_columns import Operations
from exporters.line.view import View, events_text, interval_s

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
    def needs(self) -> frozenset[str | Series]:
        """What the columns are made of: metrics, and single series of others."""
        columns = self.view.columns
        alone = {column.alone for column in columns if column.alone}
        return self.view.metrics(column for column in columns if not column.alone) | alone

    @cached_property
    def header(self) -> list[str]:
        """The names of the columns."""
        return list(self.row(NAME, Sample("", NEVER, {}, {}), 0, 0, ("", "")))

    def cluster_row(self, found: ClusterSample, nodes: int) -> Row:
        """Return the row of all `nodes` together in an interval."""
        return self.row(NAME, found.sample, found.answered, nodes - found.answered, ("", ""))

    def node_rows(self, node: NodeRun) -> Iterator[tuple[int, Row]]:
        """Yield the intervals of one node, and the row of each."""
        head = node.head
        for place, found in node.intervals.items():
            answered = int(any(source in found.sample.elapsed_s for source in head.sources))
            yield place, self.row(node.node, found.sample, answered, 1 - answered, (head.disk, head.interface))

    def row(self, name: str, sample: Sample, answered: int, missing: int, devices: tuple[str, str]) -> Row:
        """Return one row: of the `answered` nodes that it is made of, `missing` being how many are not in it."""
        operations = self.view.operations
        return {
            "time": rounded(sample.tick.time_s),
            "node": name,
            "interval_s": rounded(interval_s(sample), 6),
            "nodes": answered,
            "nodes_missing": missing,
            **{word: rounded(operations.increase(sample, operation)) for operation, word in OPERATIONS},
            **cells_with_ends(self.view.columns, sample, dict(zip((DISK, INTERFACE), devices, strict=True))),
            "percentiles": "decayed" if operations.is_decayed(sample) else "interval",
            "late_ms": rounded(1000 * sample.tick.late_s),
            "events": events_text(sample) or None,
        }


@lru_cache(maxsize=4)
def table_of(choice: Choice) -> Table:
    """Return the columns for a choice."""
    operations = Operations(choice.keyspace, choice.table, local=choice.local)
    return Table(View(operations, disk=WATCHED, interface=WATCHED, wide=True))

"""Rows of a merged run, for each node and for the cluster, with the columns of the wide view; rows as TSV and CSV."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from collector.merge.aggregation import NAME
from collector.merge.grid import ClusterSample
from collector.model.metric import Series
from collector.model.snapshot import NEVER, WATCHED, Sample
from collector.node.metrics.requests import OPERATIONS
from exporters.rows.columns import DISK, INTERFACE, Cell, Column, cells_with_ends, rounded
from exporters.rows.operation_columns import Operations
from exporters.rows.view import View, events_text, interval_s

TEXT_COLUMNS = ("node", DISK, INTERFACE, "percentiles", "events")
TOTAL = "operations"
"""The column with the number of all operations."""
INTEGER_COLUMNS = ("nodes", "nodes_missing")
"""Columns whose cells are always integers; the cells of other columns are numbers."""
Row = dict[str, Cell]
# Characters that would end a TSV cell or row become spaces, because IANA's text/tab-separated-values has no quoting.
_ENDS = "\t\n\r\x0b\x0c\x85\u2028\u2029"
_TSV = str.maketrans(dict.fromkeys(_ENDS, " "))
_UNSAFE = re.compile(f"[{_ENDS}]")
# The characters that TSV replaces or CSV quotes.
_SPECIAL = re.compile(f'[{_ENDS},"]')
_EMPTY = '""'
_QUOTED = re.compile('[,"\r\n]')
CSV_LINE_END = "\r\n"
"""The end of a line in RFC 4180."""
Text = tuple[str, str]
"""The same rows as TSV and as CSV."""
SUFFIXES = (".tsv", ".csv")


@dataclass(frozen=True)
class Table:
    """The columns of a merged run."""

    view: View

    @cached_property
    def needs(self) -> frozenset[str | Series]:
        """The metrics that the columns need; for a column that reads only one series, just that series."""
        return self._needs_of(self.view.columns)

    def needs_of(self, names: Collection[str]) -> frozenset[str | Series]:
        """Return what some columns need; they must be columns of the view."""
        return self._needs_of([column for column in self.view.columns if column.name in names])

    def _needs_of(self, columns: Sequence[Column]) -> frozenset[str | Series]:
        alone = {column.alone for column in columns if column.alone}
        return self.view.metrics(column for column in columns if not column.alone) | alone

    @cached_property
    def header(self) -> list[str]:
        return list(self.row(NAME, Sample("", NEVER, {}, {}), 0, 0, ("", "")))

    @cached_property
    def column_by_name(self) -> Mapping[str, Column]:
        """The columns of the view by name."""
        return {column.name: column for column in self.view.columns}

    def cluster_row(self, cluster: ClusterSample, nodes: int) -> Row:
        """Return the cluster's row for an interval; `nodes` is the number of nodes in the run."""
        return self.row(NAME, cluster.sample, cluster.answered, nodes - cluster.answered, ("", ""))

    def row(self, name: str, sample: Sample, answered: int, missing: int, devices: tuple[str, str]) -> Row:
        """Return a row with data from `answered` nodes; `missing` is the number of nodes without data."""
        operations = self.view.operations
        usual, others = (
            {
                operation.plural: rounded(operations.increase(sample, operation.scope))
                for operation in OPERATIONS
                if operation.is_usual is is_usual
            }
            for is_usual in (True, False)
        )
        return {
            **first_cells(name, sample, answered, missing),
            **usual,
            **cells_with_ends(self.view.columns, sample, dict(zip((DISK, INTERFACE), devices, strict=True))),
            **others,
            TOTAL: rounded(operations.total_of(sample, operations.increase)),
            **last_cells(sample, is_decayed=operations.is_decayed(sample)),
        }


class ClusterRow(Mapping[str, Cell]):
    """The same as `Table.cluster_row`, but a cell is computed when it is first read: plots read few of them."""

    def __init__(self, table: Table, cluster: ClusterSample, nodes: int) -> None:
        self._table, self._cluster, self._nodes = table, cluster, nodes
        self._cells = first_cells(NAME, cluster.sample, cluster.answered, nodes - cluster.answered)

    def __getitem__(self, name: str) -> Cell:
        if name not in self._cells:
            column = self._table.column_by_name.get(name)
            if column is not None:
                self._cells[name] = rounded(column.of(self._cluster.sample))
            elif name in self._table.header:
                self._cells = self._table.cluster_row(self._cluster, self._nodes)
        return self._cells[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._table.header)

    def __len__(self) -> int:
        return len(self._table.header)


def first_cells(name: str, sample: Sample, answered: int, missing: int) -> Row:
    """Return the cells to the left of the numbers of operations; the arguments are those of `Table.row`."""
    return {
        "time": rounded(sample.tick.time_s),
        "node": name,
        "interval_s": rounded(interval_s(sample), 6),
        "nodes": answered,
        "nodes_missing": missing,
    }


def last_cells(sample: Sample, *, is_decayed: bool) -> Row:
    """Return the cells to the right of the view's columns."""
    return {
        "percentiles": "decayed" if is_decayed else "interval",
        "late_ms": rounded(1000 * sample.tick.late_s),
        "events": events_text(sample) or None,
    }


@lru_cache(maxsize=4)
def table_of(operations: Operations) -> Table:
    """Return the columns of a merged run that shows these reads and writes."""
    return Table(View(operations, disk=WATCHED, interface=WATCHED, wide=True))


def header_text(header: Sequence[str]) -> Text:
    """Return the header line as TSV and as CSV."""
    return rows_text(header, [dict(zip(header, header, strict=True))])


def rows_text(header: Sequence[str], rows: Iterable[Mapping[str, Cell]]) -> Text:
    """Return the rows as TSV and as CSV, one line each; absent values become empty cells."""
    texts = cells_texts(header, rows)
    # The line of a single empty cell would be an empty one, which readers skip.
    return "".join(f"{tsv}\n" for tsv, _ in texts), "".join(f"{line or _EMPTY}{CSV_LINE_END}" for _, line in texts)


def cells_texts(header: Sequence[str], rows: Iterable[Mapping[str, Cell]]) -> list[Text]:
    """Return the cells of each row as TSV and as CSV, without the end of the line."""
    texts = []
    for row in rows:
        cells = _texts(header, row)
        is_plain = not _SPECIAL.search("".join(cells))
        texts.append(("\t".join(cells), ",".join(cells)) if is_plain else (_tsv(cells), ",".join(map(_quoted, cells))))
    return texts


def _quoted(cell: str) -> str:
    # Python's csv module refuses NUL before 3.11.
    return '"{}"'.format(cell.replace('"', '""')) if _QUOTED.search(cell) else cell


def _texts(header: Sequence[str], row: Mapping[str, Cell]) -> list[str]:
    return [
        "" if (cell := row.get(column)) is None else cell if isinstance(cell, str) else repr(cell) for column in header
    ]


def _tsv(cells: Sequence[str]) -> str:
    return "\t".join(cells if not _UNSAFE.search("".join(cells)) else [cell.translate(_TSV) for cell in cells])

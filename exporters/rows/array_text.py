"""The rows of a node as text, from arrays: the same text as that of its rows, but made column by column."""

from collections.abc import Sequence
from itertools import groupby

import numpy as np
import orjson

from collector.merge.arrays import Floats
from collector.merge.merge_job import NodeRun
from collector.merge.node_columns import NodeColumns
from collector.node.metrics.requests import OPERATIONS
from exporters.rows.cells import DIGITS, rounded
from exporters.rows.column_arrays import ColumnArrays, NoArrayError
from exporters.rows.columns import DISK, INTERFACE
from exporters.rows.formulas import Gauge
from exporters.rows.merged_rows import TOTAL, Row, Table, first_cells, last_cells
from exporters.rows.tsv_csv import CSV_LINE_END, Text, cells_texts

# Up to this number, multiplying by 10**DIGITS changes a number by less than TIE_SLACK.
MAX_SCALED = 1e9
TIE_SLACK = 0.002
# From this number on, orjson writes exponents or might differ from `repr`.
MAX_NUMBER = 1e15


def array_text(table: Table, node: NodeRun, columns: NodeColumns) -> Text:
    """Return a node's rows as TSV and as CSV. Raises NoArrayError."""
    if not columns.indices:
        return "", ""
    with np.errstate(all="ignore"):
        numbers = _numbers(table, columns)
    others = _other_cells(node, columns)
    parts = []
    for is_number, group in groupby(table.header, numbers.__contains__):
        names = list(group)
        parts.append(number_texts([numbers[name] for name in names]) if is_number else cells_texts(names, others))
    tsv = "".join("\t".join(tsv for tsv, _ in row) + "\n" for row in zip(*parts, strict=True))
    csv = "".join(",".join(csv for _, csv in row) + CSV_LINE_END for row in zip(*parts, strict=True))
    return tsv, csv


def _numbers(table: Table, node: NodeColumns) -> dict[str, Floats]:
    """Return the arrays of the numeric columns, by name. Raises NoArrayError."""
    arrays = ColumnArrays(node, table.view.operations)
    numbers = {operation.plural: arrays.increase(operation.scope) for operation in OPERATIONS}
    numbers[TOTAL] = arrays.total_increase()
    for column in table.view.columns:
        numbers[column.name] = arrays.column(column.of)
        if column.is_gauge:
            if not isinstance(column.of, Gauge):
                raise NoArrayError
            numbers[f"min_{column.name}"], numbers[f"max_{column.name}"] = arrays.ends(column.of)
    return numbers


def _other_cells(node: NodeRun, columns: NodeColumns) -> list[Row]:
    """Return the rows without the cells of the numeric columns."""
    devices = {DISK: node.head.disk or None, INTERFACE: node.head.interface or None}
    rows = []
    for interval in columns.intervals(()).values():
        sample = interval.sample
        answered = int(node.answered(sample))
        rows.append(
            {
                **first_cells(node.node, sample, answered, 1 - answered),
                **devices,
                **last_cells(sample, is_decayed=False),
            }
        )
    return rows


def number_texts(columns: Sequence[Floats]) -> list[Text]:
    """Return the cells of each row, rounded as in `cells.rounded`, as TSV and as CSV. Raises NoArrayError."""
    matrix = rounded_numbers(np.stack(columns, axis=1))
    if (np.abs(matrix) >= MAX_NUMBER).any():
        raise NoArrayError
    text = orjson.dumps(matrix, option=orjson.OPT_SERIALIZE_NUMPY).decode()
    # Absent values are empty, and whole numbers have no decimal point.
    text = text.replace("null", "").replace(".0,", ",").replace(".0]", "]")[len("[[") : -len("]]")]
    rows = text.split("],[")
    return list(zip(text.replace("],[", "\n").replace(",", "\t").split("\n"), rows, strict=True))


def rounded_numbers(numbers: Floats) -> Floats:
    """Return the numbers, rounded exactly as by `cells.rounded`; infinity becomes NaN."""
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = numbers * 10**DIGITS
        is_tie = np.abs(np.abs(scaled - np.trunc(scaled)) - 0.5) < TIE_SLACK
        result = np.rint(scaled) / 10**DIGITS
    is_whole = numbers == np.trunc(numbers)
    # Adding 0.0 changes -0.0 to 0.0.
    result = np.where(is_whole, numbers, result) + 0.0
    # The product may round to the wrong side of a tie, and it is not precise enough for large numbers.
    for index in zip(*np.nonzero(~is_whole & (is_tie | (np.abs(numbers) > MAX_SCALED))), strict=True):
        result[index] = np.nan if (number := rounded(float(numbers[index]))) is None else number
    return np.where(np.isfinite(result), result, np.nan)

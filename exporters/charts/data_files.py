"""Data files: tab-separated with one header line; missing values are NaN, at which gnuplot breaks a line."""

from collections.abc import Collection, Mapping, Sequence
from math import isfinite
from statistics import fmean

from collector.node.metrics.requests import OPERATIONS, Operation
from exporters.charts.plot_data import CLUSTER, Run

Values = Sequence[float | None]
Columns = dict[str, Values]
"""The columns of a data file, keyed by heading; all have the same length."""

# gnuplot draws lines across empty fields, but breaks them at NaN.
MISSING = "NaN"
_LARGE = 1e6
_DIGITS, _EXACT_DIGITS = 6, 13
# With six digits, all percentiles above 99.99995% would become 100%.
_EXACT_COLUMNS = ("percentile",)


def number(value: object) -> float | None:
    """Return a cell's value if it is a finite number, else None."""
    if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value):
        return float(value)
    return None


def series(run: Run, node: str, column: str) -> list[float | None]:
    """Return a node's column: one value for each timestamp in the run."""
    rows = run.rows.get(node) or [None] * len(run.times)
    return [None if row is None else number(row.get(column)) for row in rows]


def other_operations(run: Run) -> list[Operation]:
    """Return the operations other than reads and writes that occur."""
    return [
        operation
        for operation in OPERATIONS
        if not operation.is_usual and any(series(run, CLUSTER, f"{operation.plural}_per_s"))
    ]


def shown_operations(run: Run) -> list[Operation]:
    """Return reads and writes, and the other operations that occur."""
    return [*(operation for operation in OPERATIONS if operation.is_usual), *other_operations(run)]


def node_columns(run: Run, node: str) -> dict[str, Values]:
    """Return a node's rates of the shown operations, followed by their p99 latencies, by column name."""
    operations = shown_operations(run)
    columns = {f"{operation.plural}_per_s": rates(run, node, operation) for operation in operations}
    return {**columns, **{name: series(run, node, name) for name in (f"{one.word}_p99_ms" for one in operations)}}


def rates(run: Run, node: str, operation: Operation) -> Values:
    """Return an operation's rate on a node, or in the cluster.

    One that is neither a read nor a write has a rate of 0 where reads have one.
    """
    values = series(run, node, f"{operation.plural}_per_s")
    if operation.is_usual:
        return values
    is_known = [reads is not None for reads in series(run, node, "reads_per_s")]
    return [0.0 if value is None and known else value for value, known in zip(values, is_known, strict=True)]


def present(values: Values) -> list[float]:
    """Return the values that are not None."""
    return [value for value in values if value is not None]


def has_isolated(values: Values) -> bool:
    """Return whether any value has no neighbour on either side, so that a line would not show it."""
    padded = [None, *values, None]
    return any(
        here is not None and before is None and after is None
        for before, here, after in zip(padded, padded[1:], padded[2:], strict=False)
    )


def text(columns: Mapping[str, Values]) -> str:
    digits = [_EXACT_DIGITS if name in _EXACT_COLUMNS else _DIGITS for name in columns]
    lines = ([_cell(*pair) for pair in zip(row, digits, strict=True)] for row in zip(*columns.values(), strict=True))
    return "".join("\t".join(cells) + "\n" for cells in (list(columns), *lines))


def _cell(value: float | None, digits: int) -> str:
    if value is None:
        return MISSING
    # Times since the epoch have ten digits before the decimal point, so large numbers are written with more digits.
    return f"{value:.{_EXACT_DIGITS if abs(value) >= _LARGE else digits}g}"


def slowest(run: Run, node: str) -> Values:
    """Return the latency of a node's, or the cluster's, slowest operation in each interval, in ms.

    The intervals of a long run are long, and their percentiles hide short peaks; the maximum does not.
    """
    columns = [series(run, node, f"{operation.word}_max_ms") for operation in OPERATIONS]
    return [max(present(row), default=None) for row in zip(*columns, strict=True)]


def thinned(columns: Columns, limit: int, mean: Collection[str] = ()) -> Columns:
    """Return the columns with at most about `limit` rows, as many as a plot can show; the first column contains times.

    Rows that share a pixel become two rows, with each column's lowest and highest value in their original order. For
    the columns named in `mean`, which are stacked, both rows have the mean instead, because extremes do not add up. If
    any of a column's combined values is missing, one of the two values is missing as well, to keep the gap visible.
    """
    names = list(columns)
    length = len(columns[names[0]])
    size = -(-2 * length // limit)
    if size <= 2:
        return columns
    kept: dict[str, list[float | None]] = {name: [] for name in names}
    for start in range(0, length, size):
        for name in names:
            part = columns[name][start : start + size]
            if name == names[0]:
                kept[name] += [part[len(part) // 2], part[-1]]
            else:
                kept[name] += _pair(part, name in mean)
    return {name: kept[name] for name in names}


def _pair(part: Values, mean: bool) -> list[float | None]:
    values = present(part)
    if not values:
        return [None, None]
    if mean:
        first = second = fmean(values)
    else:
        low, high = min(values), max(values)
        first, second = (low, high) if part.index(low) <= part.index(high) else (high, low)
    if len(values) == len(part):
        return [first, second]
    # Only one value fits beside the gap: keep the second, which is the later extreme or the mean.
    return [second, None] if part[-1] is None else [None, second]

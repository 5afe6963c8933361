"""Data files: tab-separated with one header line; missing values are NaN, at which gnuplot breaks a line."""

from collections.abc import Collection, Mapping, Sequence
from math import isfinite
from statistics import fmean

from exporters.gnuplot.plot_data import Run

Values = Sequence[float | None]
Columns = dict[str, Values]
"""The columns of a data file by heading; all have the same length."""

# gnuplot draws lines across empty fields, but breaks them at NaN.
MISSING = "NaN"
_LARGE = 1e6


def number(value: object) -> float | None:
    """Return a cell's value if it is a finite number, else None."""
    if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value):
        return float(value)
    return None


def series(run: Run, node: str, column: str) -> list[float | None]:
    """Return a node's column: one value for each time of the run."""
    rows = run.rows.get(node) or [None] * len(run.times)
    return [None if row is None else number(row.get(column)) for row in rows]


def present(values: Values) -> list[float]:
    """Return the values that are not None."""
    return [value for value in values if value is not None]


def has_isolated(values: Values) -> bool:
    """Return whether any value has missing neighbours on both sides, so that a line cannot show it."""
    padded = [None, *values, None]
    return any(
        here is not None and before is None and after is None
        for before, here, after in zip(padded, padded[1:], padded[2:], strict=False)
    )


def text(columns: Mapping[str, Values]) -> str:
    """Return the data file's text."""
    rows = zip(*columns.values(), strict=True)
    return "".join(
        "\t".join(cells) + "\n" for cells in (list(columns), *([_cell(value) for value in row] for row in rows))
    )


def _cell(value: float | None) -> str:
    if value is None:
        return MISSING
    # Times since the epoch have ten digits before the decimal point.
    return f"{value:.{13 if abs(value) >= _LARGE else 6}g}"


def thinned(columns: Columns, limit: int, mean: Collection[str] = ()) -> Columns:
    """Thin the rows to about `limit`, the most that a plot can show; the first column contains times.

    From rows that share a pixel, each column keeps its lowest and highest values in their original order. Columns in
    `mean` are stacked, and extremes do not add up, so they keep their mean twice instead. If any of the values are
    missing, so is one of the two that remain.
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
    # A peak next to a missing value must not be lost: keep the extreme that comes second.
    return [second, None] if part[-1] is None else [None, second]

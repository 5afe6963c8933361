"""Data files: tab-separated, one header line, and a hole is NaN, where gnuplot breaks a line."""

from collections.abc import Collection, Mapping, Sequence
from math import isfinite
from statistics import fmean

from exporters.gnuplot.plot_data import Run

Values = Sequence[float | None]
Columns = dict[str, Values]
"""A data file by the headings of its columns, all of one length."""

# gnuplot draws its lines across fields that are empty; NaN it takes for a gap, and other programs for a missing number.
HOLE = "NaN"
_LARGE = 1e6


def number(value: object) -> float | None:
    """Return a cell's value if it is a number to be drawn."""
    if isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value):
        return float(value)
    return None


def series(run: Run, node: str, column: str) -> list[float | None]:
    """Return a node's column, a value for each time of the run."""
    rows = run.rows.get(node) or [None] * len(run.times)
    return [None if row is None else number(row.get(column)) for row in rows]


def known(values: Values) -> list[float]:
    """Return the values that are."""
    return [value for value in values if value is not None]


def has_lone(values: Values) -> bool:
    """Return whether a value stands between two holes, where a line has nothing to draw."""
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
        return HOLE
    # Times since the epoch have ten digits before the point.
    return f"{value:.{13 if abs(value) >= _LARGE else 6}g}"


def thinned(columns: Columns, most: int, mean: Collection[str] = ()) -> Columns:
    """Return at most about `most` rows, for a picture cannot show more: the first column are times.

    Of rows that become one another's neighbours in a pixel the lowest and the highest value are kept, in the order in
    which they came, or of columns in `mean` their mean twice: those are stacked, and extremes do not add up. A hole
    among them stays one, as long as half of what they cover.
    """
    names = list(columns)
    length = len(columns[names[0]])
    size = -(-2 * length // most)
    if size <= 2:
        return columns
    found: dict[str, list[float | None]] = {name: [] for name in names}
    for start in range(0, length, size):
        for name in names:
            part = columns[name][start : start + size]
            if name == names[0]:
                found[name] += [part[len(part) // 2], part[-1]]
            else:
                found[name] += _pair(part, name in mean)
    return {name: found[name] for name in names}


def _pair(part: Values, mean: bool) -> list[float | None]:
    values = known(part)
    if not values:
        return [None, None]
    if mean:
        first = second = fmean(values)
    else:
        low, high = min(values), max(values)
        first, second = (low, high) if part.index(low) <= part.index(high) else (high, low)
    if len(values) == len(part):
        return [first, second]
    # What is left is the value further from the middle of things: a peak is not to be lost to a hole beside it.
    return [second, None] if part[-1] is None else [None, second]

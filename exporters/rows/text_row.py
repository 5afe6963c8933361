"""A sample as a row of text for a terminal."""

import time
from collections.abc import Sequence

from collector.model.sample import Sample
from exporters.rows.columns import Column
from exporters.rows.formulas import Cell, number
from exporters.rows.view import View, interval_s, problems, running

# A row gets a remark if its tick is late by more than LATE_SHARE intervals, or if its rates cover more than
# GAP_SHARE intervals.
LATE_SHARE = 0.1
GAP_SHARE = 1.5
ABSENT = "-"

_TIME_WIDTH = {"": 0, "Time": 8, "Epoch": 14}
_COMPACTIONS = "Compactions"
_SHORT = {"Compaction": "Min", "Major compaction": "Maj"}


def fitting(view: View, width: int | None) -> list[Column]:
    """Return the columns that fit into `width` (None for no limit); the least important ones are hidden first."""
    kept = list(view.text_columns)
    used = _TIME_WIDTH[view.time] + (len(_COMPACTIONS) + 2 if view.compactions else 0)
    while width is not None and len(kept) > 1 and used + sum(_width(column) + 1 for column in kept) > width:
        lowest = min(column.keep for column in kept)
        kept.remove([column for column in kept if column.keep == lowest][-1])
    return kept


def groups(view: View, width: int | None) -> list[list[Column]]:
    """Return the columns of each line of a row; in the wide view, a row takes as many lines as it needs."""
    if not view.wide or width is None:
        return [fitting(view, width)]
    fixed = _TIME_WIDTH[view.time] + (len(_COMPACTIONS) + 2 if view.compactions else 0)
    lines: list[list[Column]] = []
    left = 0
    for column in view.text_columns:
        left -= _width(column) + 1
        if left < 0 or not lines:
            lines.append([])
            left = width - fixed - _width(column) - 1
        lines[-1].append(column)
    return lines


def hidden_text(view: View, columns: Sequence[Column]) -> str:
    """Return a message about columns that do not fit, or "" if all columns fit."""
    total = len(view.text_columns)
    hidden = total - len(columns)
    verb = "does" if hidden == 1 else "do"
    return f"{hidden} of {total} columns {verb} not fit (hint: see --columns help)" if hidden > 0 else ""


def _width(column: Column) -> int:
    return max(len(column.header), 5 + column.digits)


def header(view: View, columns: Sequence[Column]) -> str:
    return _joined(view, view.time, [column.header.rjust(_width(column)) for column in columns], _COMPACTIONS)


def row(view: View, columns: Sequence[Column], sample: Sample, label: str = "", width: int | None = None) -> str:
    """Return the row; `label` replaces the time. Compactions that do not fit into `width` are omitted."""
    cells = [_cell(column, column.of(sample)).rjust(_width(column)) for column in columns]
    text = _joined(view, label or _clock(view, sample), cells, compactions_text(sample))
    if view.compactions and width is not None and len(text) > width:
        text = text[: width - 1].rpartition(" ")[0] + " …"
    return text


def _joined(view: View, first: str, cells: list[str], last: str) -> str:
    parts = [first.rjust(_TIME_WIDTH[view.time])] if view.time else []
    return " ".join([*parts, *cells, *([f" {last}"] if view.compactions else [])])


def _clock(view: View, sample: Sample) -> str:
    if view.time == "Epoch":
        return f"{sample.tick.time_s:.3f}".rstrip("0").rstrip(".")
    return time.strftime("%H:%M:%S", time.localtime(sample.tick.time_s))


def _cell(column: Column, value: Cell) -> str:
    if value is None:
        return ABSENT
    if not isinstance(value, float):
        return str(value)
    for digits in range(column.digits, 0, -1):
        # Large values are shown with fewer decimal places, to stay aligned.
        if len(text := f"{value:.{digits}f}") <= _width(column):
            return text
    for power, letter in enumerate(("", "k", "M", "G", "T")):
        if len(text := f"{value / 1000**power:.0f}{letter}") <= _width(column):
            return text
    return f"{value:.0e}"


def compactions_text(sample: Sample) -> str:
    """Return compactions as text such as `Pen/2 Min/58%`: the number pending, and the progress of each running one."""
    pending = number(sample, ("cassandra_compaction_pending",))
    words = [f"Pen/{ABSENT if pending is None else round(pending)}"]
    words += [f"{_SHORT.get(task['type'], task['type'][:3])}/{task['done_pct']:.0f}%" for task in running(sample)]
    return " ".join(words)


def marks(sample: Sample, interval: float) -> str:
    """Return remarks about the row (problems, lateness, gaps, age), separated by semicolons; "" if there are none."""
    words = [text] if (text := problems(sample)) else []
    if sample.tick.late_s > LATE_SHARE * interval:
        words.append(f"late by {1000 * sample.tick.late_s:.0f} ms")
    covered_s = interval_s(sample)
    if covered_s is not None and covered_s > GAP_SHARE * interval:
        words.append(f"rates averaged over {covered_s:.1f} s")
    elif sample.last_known and sample.age_s is not None:
        words.append(f"Cassandra's values are {sample.age_s:.1f} s old")
    return "; ".join(words)

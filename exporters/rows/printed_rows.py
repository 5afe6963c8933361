"""A sample as a row that the default command prints: text for a terminal, JSON or CSV; and its events as lines of text.

JSON and CSV have the same column names.
"""

import csv
import io
import json
import time
from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from typing import Any

from collector.model.snapshot import Event, Sample, Tick
from collector.printable import one_line, printable, printable_json
from exporters.rows.columns import Cell, Column, cells, number, rounded
from exporters.rows.table_rows import tables
from exporters.rows.view import View, events_text, interval_s, problems, running

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


def text_header(view: View, columns: Sequence[Column]) -> str:
    return _joined(view, view.time, [column.header.rjust(_width(column)) for column in columns], _COMPACTIONS)


def text_row(view: View, columns: Sequence[Column], sample: Sample, label: str = "", width: int | None = None) -> str:
    """Return the row; `label` replaces the time. Compactions that do not fit into `width` are omitted."""
    texts = [_cell(column, column.of(sample)).rjust(_width(column)) for column in columns]
    text = _joined(view, label or _clock(view, sample), texts, compactions_text(sample))
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


def row_values(view: View, sample: Sample) -> dict[str, Any]:
    """Return the row as values that JSON can represent, keyed by column name; absent values are None."""
    content: dict[str, Any] = {
        "time": rounded(sample.tick.time_s),
        "interval_s": rounded(interval_s(sample), 6),
        "node": sample.node,
        **(_picked(view, sample) if view.picked else _usual(view, sample)),
    }
    if view.compactions:
        content["compactions"] = running(sample)
    if view.tables:
        content["tables"] = tables(sample)
    return content


def _picked(view: View, sample: Sample) -> dict[str, Any]:
    """Return the cells of the columns that the user picked, and of no others, not even a device's name."""
    known = cells(view.columns, sample, view.devices)
    return {name: known[name] for name in view.picked}


def _usual(view: View, sample: Sample) -> dict[str, Any]:
    return {
        **cells(view.promised, sample, view.devices),
        "percentiles": "decayed" if view.decayed else "interval",
        "events": [_event(event) for event in sample.events],
        "late_ms": rounded(1000 * sample.tick.late_s),
        "source": view.source or None,
        "cassandra_age_s": rounded(sample.age_s, 3),
        **cells(view.more, sample, view.devices),
    }


def _event(event: Event) -> dict[str, Any]:
    when = {} if event.time_s is None else {"time": round(event.time_s, 3)}
    return {"kind": event.kind, "text": event.text, **when}


def json_row(view: View, sample: Sample) -> str:
    """Return the row as one line of JSON."""
    return printable_json(json.dumps(row_values(view, sample), ensure_ascii=False))


def csv_header(view: View) -> str:
    return _csv(row_values(view, Sample("", Tick(0.0), {}, {})))


def csv_row(view: View, sample: Sample) -> str:
    """Return the row as CSV: absent values are empty, and events are separated by semicolons.

    Text is made printable but is otherwise unchanged. Import it into a spreadsheet as text; otherwise the spreadsheet
    may evaluate some of it as formulas.
    """
    content = row_values(view, sample)
    if "events" in content:
        content["events"] = events_text(sample)
    if "compactions" in content:
        content["compactions"] = compactions_text(sample)
    return _csv("" if value is None else value for value in content.values())


def _csv(values: Iterable[Any]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerow(printable(str(value)) for value in values)
    return out.getvalue().removesuffix("\r\n")


def event_line(node: str, event: Event, seen_s: float) -> str:
    """Return the event as one line without a newline, such as `2026-11-21T12:24:30.219+01:00 node1 gc GC … 312 ms`.

    The time is local, in ISO 8601. `seen_s` (seconds since the epoch) is used for an event without a time.
    """
    time_s = seen_s if event.time_s is None else event.time_s
    # Round first: isoformat truncates and could show the previous millisecond.
    when = datetime.fromtimestamp(round(time_s, 3), timezone.utc).astimezone().isoformat(timespec="milliseconds")
    return f"{when} {one_line(node)} {one_line(event.kind)} {one_line(event.text)}"

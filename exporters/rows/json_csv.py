"""Machine-readable rows: a sample as a line of JSON or CSV, with the same column names in both."""

import csv
import io
import json
from collections.abc import Iterable
from typing import Any

from collector.model.sample import Sample
from collector.model.snapshot import Event, Tick
from collector.printable import printable, printable_json
from exporters.rows.columns import cells, rounded
from exporters.rows.table_rows import tables
from exporters.rows.text_row import compactions_text
from exporters.rows.view import View, events_text, interval_s, running


def row(view: View, sample: Sample) -> dict[str, Any]:
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
    return printable_json(json.dumps(row(view, sample), ensure_ascii=False))


def csv_header(view: View) -> str:
    return _csv(row(view, Sample("", Tick(0.0), {}, {})))


def csv_row(view: View, sample: Sample) -> str:
    """Return the row as CSV: absent values are empty, and events are separated by semicolons.

    Text is made printable but is otherwise unchanged. Import it into a spreadsheet as text; otherwise the spreadsheet
    may evaluate some of it as formulas.
    """
    content = row(view, sample)
    if "events" in content:
        content["events"] = events_text(sample)
    if "compactions" in content:
        content["compactions"] = compactions_text(sample)
    return _csv("" if value is None else value for value in content.values())


def _csv(values: Iterable[Any]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerow(printable(str(value)) for value in values)
    return out.getvalue().removesuffix("\r\n")

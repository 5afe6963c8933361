"""Rows for programs: one Sample as one line of JSON or CSV, under the same names."""

import csv
import io
import json
from collections.abc import Iterable
from math import isfinite
from typing import Any

from collector.model import Event, Sample, Tick
from exporters.columns import Cell
from exporters.line import compactions_text
from exporters.tables import tables
from exporters.view import View, interval_s, running, told


def row(view: View, sample: Sample) -> dict[str, Any]:
    """Return the row as an object of JSON's types; None for what is not known."""
    cells: dict[str, Any] = {
        "time": _short(sample.tick.time_s),
        "interval_s": _rounded(interval_s(sample), 6),
        "node": sample.node,
    }
    for column in view.columns:
        if column.name == "disk_reads_per_s":
            cells["disk"] = view.disk or None
        if column.name == "net_rx_kbit_per_s":
            cells["net_interface"] = view.interface or None
        cells[column.name] = _rounded(column.of(sample))
        if column.name == "compactions_pending":
            cells["percentiles"] = "decayed" if view.decayed else "interval"
            cells["events"] = [_event(event) for event in sample.events]
            cells["late_ms"] = _rounded(1000 * sample.tick.late_s)
            cells["source"] = view.source or None
            cells["cassandra_age_s"] = _rounded(sample.age_s, 3)
    if view.compactions:
        cells["compactions"] = running(sample)
    if view.tables:
        cells["tables"] = tables(sample)
    return cells


def _event(event: Event) -> dict[str, Any]:
    when = {} if event.time_s is None else {"time": round(event.time_s, 3)}
    return {"kind": event.kind, "text": event.text, **when}


def _rounded(value: Cell, digits: int = 4) -> Cell:
    if isinstance(value, float):
        return _short(round(value, digits)) if isfinite(value) else None
    return value


def _short(value: float) -> float:
    return int(value) if value == int(value) else value


def json_row(view: View, sample: Sample) -> str:
    """Return the row as one line of JSON."""
    return json.dumps(row(view, sample), ensure_ascii=False)


def csv_header(view: View) -> str:
    """Return CSV's one header."""
    return _csv(row(view, Sample("", Tick(0.0), {}, {})))


def csv_row(view: View, sample: Sample) -> str:
    """Return the row as CSV: absent values are empty, events words between semicolons."""
    cells = row(view, sample)
    cells["events"] = told(sample)
    if "compactions" in cells:
        cells["compactions"] = compactions_text(sample)
    return _csv("" if value is None else value for value in cells.values())


def _csv(cells: Iterable[Any]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerow(cells)
    return out.getvalue().removesuffix("\r\n")

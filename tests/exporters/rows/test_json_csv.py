"""JSON and CSV rows: documented names in a fixed order, absent values, and arbitrary text."""

import csv
import io
import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.model.snapshot import Event, Sample, Tick
from collector.printable import printable
from exporters.rows import printed_rows
from exporters.rows.operation_columns import Operations
from exporters.rows.view import View
from tests.every import every
from tests.exporters.samples import busy, plain, unknown

# Programs rely on these names and their order.
DOCUMENTED = [
    *("time", "interval_s", "node"),
    *("reads_per_s", "read_mean_ms", "read_p50_ms", "read_p95_ms", "read_p99_ms", "read_max_ms"),
    *("writes_per_s", "write_mean_ms", "write_p50_ms", "write_p95_ms", "write_p99_ms", "write_max_ms"),
    *("cpu_user_pct", "cpu_system_pct", "cpu_idle_pct", "cpu_iowait_pct", "cpu_steal_pct"),
    *("disk", "disk_reads_per_s", "disk_writes_per_s", "disk_read_mb_per_s", "disk_write_mb_per_s"),
    *("net_interface", "net_rx_kbit_per_s", "net_tx_kbit_per_s"),
    *("compactions_pending", "percentiles", "events", "late_ms", "source", "cassandra_age_s"),
]
# Names added later come after the names above.
STATISTICS = ("s_per_s", "_mean_ms", "_p50_ms", "_p95_ms", "_p99_ms", "_max_ms")
OTHERS = ("range_read", "cas_read", "cas_write", "view_write", "accord_read", "accord_write")
ADDED = [
    "cpu_nice_pct",
    "operations_per_s",
    *(f"{word}{statistic}" for word in OTHERS for statistic in STATISTICS),
    *(f"{word}_errors_per_s" for word in ("read", "write", *OTHERS)),
]
ALWAYS = {"time", "node", "percentiles", "events", "late_ms", "disk", "net_interface"}
VIEWS = [
    plain(),
    plain(wide=True),
    plain(compactions=True),
    plain(wide=True, compactions=True, percentiles=True, time="Time"),
    View(Operations("ks", "t1")),
]
SAMPLES = {"busy": busy(), "unknown": unknown()}

every_view = pytest.mark.parametrize("view", VIEWS, ids=range(len(VIEWS)))
every_sample = pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES)


@every_view
@every_sample
def test_documented_names_come_first_in_their_order(view: View, sample: Sample) -> None:
    assert list(json.loads(printed_rows.json_row(view, sample)))[: len(DOCUMENTED)] == DOCUMENTED


def test_the_default_view_has_no_other_names() -> None:
    assert list(printed_rows.row_values(plain(), busy())) == [*DOCUMENTED, *ADDED]


@every_sample
def test_picked_columns_follow_the_time_interval_and_node_in_their_order(sample: Sample) -> None:
    picked = ("writes_per_s", "disk_util_pct", "reads_per_s", "cpu_user_pct", "heap_used_mb", "compactions_pending")
    view = plain(picked=picked)
    names = ["time", "interval_s", "node", *picked]
    row = json.loads(printed_rows.json_row(view, sample))
    assert list(row) == names
    wide = printed_rows.row_values(plain(wide=True), sample)
    assert row == {name: wide[name] for name in names}
    header, cells = rows_of(view, sample)
    assert header == names
    assert cells == ["" if value is None else str(value) for value in row.values()]


@every_view
@every_sample
def test_a_json_row_is_one_line(view: View, sample: Sample) -> None:
    text = printed_rows.json_row(view, replace(sample, events=(Event("no_answer", "one\ntwo\r\nthree\u2028four"),)))
    assert "\n" not in text
    assert "\r" not in text
    assert json.loads(text)["node"] == "10.0.0.1"


def test_json_does_not_escape_non_ascii_node_names() -> None:
    assert "knoten-\u00fc" in printed_rows.json_row(plain(), replace(unknown(), node="knoten-\u00fc"))


@every_view
def test_unknown_values_are_null_in_json(view: View) -> None:
    cells = printed_rows.row_values(view, unknown())
    assert cells.pop("compactions", []) == []
    assert {name for name, value in cells.items() if value is not None} <= ALWAYS
    assert cells["interval_s"] is None


@every_view
def test_unknown_values_are_empty_in_csv(view: View) -> None:
    names, cells = (
        next(csv.reader([text])) for text in (printed_rows.csv_header(view), printed_rows.csv_row(view, unknown()))
    )
    filled = {name for name, cell in zip(names, cells, strict=True) if cell}
    assert filled <= ALWAYS | {"compactions"}


def test_a_remote_machine_has_no_disk_and_no_interface() -> None:
    cells = printed_rows.row_values(View(), unknown())
    assert cells["disk"] is None
    assert cells["net_interface"] is None


def test_json_values_are_those_of_the_interval() -> None:
    cells = printed_rows.row_values(plain(), busy())
    assert cells["time"] == 1_700_000_000
    assert cells["interval_s"] == 2
    assert cells["reads_per_s"] == 4321.5
    assert cells["read_mean_ms"] == 0.7
    assert cells["write_mean_ms"] == 0.25
    assert cells["disk"] == "vda"
    assert cells["net_rx_kbit_per_s"] == 1000
    assert cells["compactions_pending"] == 2
    assert cells["late_ms"] == 12.3
    assert cells["percentiles"] == "interval"
    assert cells["events"] == [
        {"kind": "missed", "text": "1 tick missed"},
        {"kind": "disagreement", "text": 'odd, "very" odd'},
    ]


def test_percentiles_ascend_to_the_maximum() -> None:
    cells = printed_rows.row_values(plain(), busy())
    for word in ("read", "write"):
        percentiles = [cells[f"{word}_{name}_ms"] for name in ("p50", "p95", "p99", "max")]
        assert percentiles == sorted(percentiles)
        assert percentiles[0] > 0


def test_running_compactions_are_objects_in_json_and_text_in_csv() -> None:
    view = plain(compactions=True)
    assert printed_rows.row_values(view, busy())["compactions"] == [
        {"type": "Compaction", "keyspace": "ks", "table": "t2", "done_pct": 58.4},
        {"type": "Validation", "keyspace": "ks", "table": "t1", "done_pct": 10.0},
    ]
    assert next(csv.reader([printed_rows.csv_row(view, busy())]))[-1] == "Pen/2 Min/58% Val/10%"


def test_fractions_of_a_second_are_kept_in_the_time() -> None:
    assert printed_rows.row_values(plain(), replace(unknown(), tick=Tick(1_700_000_000.1)))["time"] == 1_700_000_000.1


views = st.sampled_from(VIEWS)
texts = st.one_of(st.text(max_size=20), st.text(",;\"\r\n' \t", max_size=8))


def rows_of(view: View, sample: Sample) -> list[list[str]]:
    """Return the header and the row, parsed from CSV."""
    return list(
        csv.reader(io.StringIO(f"{printed_rows.csv_header(view)}\n{printed_rows.csv_row(view, sample)}\n", newline=""))
    )


UNUSUAL_TEXTS = ["a, b", 'say "no"', "one\ntwo", "one\r\ntwo", "one\rtwo", "'", ";", " blank "]


@every("text", UNUSUAL_TEXTS)
def test_an_event_text_is_a_single_cell_without_line_breaks(text: str) -> None:
    header, row = rows_of(plain(), replace(unknown(), events=(Event("no_answer", text),)))
    cell = row[header.index("events")]
    assert cell.split() == text.split()
    assert len(cell.splitlines()) == 1


@every("name", UNUSUAL_TEXTS)
def test_a_node_name_is_a_single_cell(name: str) -> None:
    header, row = rows_of(plain(), replace(unknown(), node=name))
    assert row[header.index("node")] == printable(name)


@given(views, st.sampled_from(sorted(SAMPLES)), st.lists(texts, max_size=3))
def test_csv_rows_have_as_many_cells_as_their_header(view: View, sample: str, event_texts: list[str]) -> None:
    events = tuple(Event("no_answer", text.replace("\0", "")) for text in event_texts)
    header, row = rows_of(view, replace(SAMPLES[sample], events=events))
    assert len(header) == len(row)
    words = "; ".join(event.text for event in events).split()
    assert row[header.index("events")].split() == [printable(word) for word in words]


@every_view
def test_csv_and_json_have_the_same_names(view: View) -> None:
    assert next(csv.reader([printed_rows.csv_header(view)])) == list(printed_rows.row_values(view, busy()))

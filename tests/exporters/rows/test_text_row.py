"""Rows in a terminal: cells stay under their headers, rows fit the width, and unknown values are absent."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.model.histogram import Buckets
from collector.model.snapshot import Derived, Event, Rate, Sample, Tick
from exporters.rows import printed_rows
from exporters.rows.operation_columns import Operations
from exporters.rows.view import View
from tests.exporters.samples import busy, plain, unknown

views = st.builds(
    View,
    operations=st.sampled_from((Operations(), Operations("ks"), Operations("ks", "t1"))),
    disk=st.sampled_from(("", "vda", "nvme0n1", "a-very-long-name-of-a-disk")),
    interface=st.just("eth0"),
    time=st.sampled_from(("", "Time", "Epoch")),
    percentiles=st.booleans(),
    compactions=st.booleans(),
    wide=st.booleans(),
)
widths = st.integers(20, 250)


def multiplied(value: Derived, factor: float) -> Derived:
    """Return a number or a rate multiplied by `factor`; text values and histograms are returned unchanged."""
    if isinstance(value, Rate):
        return Rate(value.increase * factor, value.elapsed_s)
    return value if isinstance(value, str | Buckets) else value * factor


def without_compactions(sample: Sample) -> Sample:
    """Return the sample without running compactions, which are shown in the only cell of unlimited width."""
    values = {series: value for series, value in sample.values.items() if series[0] != "cassandra_compaction_size"}
    return replace(sample, values=values)


@given(views, widths)
def test_a_line_is_never_wider_than_the_terminal(view: View, width: int) -> None:
    columns = printed_rows.fitting(view, width)
    for text in (
        printed_rows.text_header(view, columns),
        printed_rows.text_row(view, columns, unknown()),
        printed_rows.text_row(view, columns, without_compactions(busy())),
    ):
        assert len(text) <= width or len(columns) == 1


@given(views, widths)
def test_rows_match_the_header_in_cell_count_and_width(view: View, width: int) -> None:
    columns = printed_rows.fitting(view, width)
    header = printed_rows.text_header(view, columns)
    for sample in (unknown(), without_compactions(busy())):
        row = printed_rows.text_row(view, columns, sample)
        assert len(row.split()) == len(header.split())
        if not view.compactions:
            assert len(row) == len(header)


@given(views, widths)
def test_the_least_important_columns_are_dropped_completely(view: View, width: int) -> None:
    kept = printed_rows.fitting(view, width)
    dropped = [column for column in view.text_columns if column not in kept]
    assert kept == [column for column in view.text_columns if column in kept]
    assert kept
    assert max((column.keep for column in dropped), default=0) <= min(column.keep for column in kept)


@given(views)
def test_a_wider_terminal_never_shows_less(view: View) -> None:
    fits = [[column.name for column in printed_rows.fitting(view, width)] for width in range(20, 251, 10)]
    assert all(set(narrower) <= set(wider) for narrower, wider in pairwise(fits))


@given(views)
def test_as_many_columns_are_shown_as_fit(view: View) -> None:
    for width in range(20, 251, 10):
        kept = printed_rows.fitting(view, width)
        dropped = [column for column in view.text_columns if column not in kept]
        if dropped:
            more = max(dropped, key=lambda column: column.keep)
            wider = printed_rows.text_header(
                view, [column for column in view.text_columns if column in kept or column is more]
            )
            # The widths may be equal, because without a time column, `fitting` reserves one character more than the
            # header needs.
            assert len(wider) >= width


@given(views, widths)
def test_the_wide_view_shows_every_column_in_several_lines(view: View, width: int) -> None:
    wide = replace(view, wide=True)
    groups = printed_rows.groups(wide, width)
    assert [column for group in groups for column in group] == wide.text_columns
    assert all(len(printed_rows.text_header(wide, group)) <= width or len(group) == 1 for group in groups)


@given(views, widths)
def test_columns_that_do_not_fit_are_counted(view: View, width: int) -> None:
    columns = printed_rows.fitting(view, width)
    hidden = len(view.text_columns) - len(columns)
    assert printed_rows.hidden_text(view, columns).startswith(f"{hidden} of " if hidden else "")
    assert bool(printed_rows.hidden_text(view, columns)) == bool(hidden)


@given(views)
def test_without_a_terminal_all_columns_are_shown(view: View) -> None:
    assert printed_rows.fitting(view, None) == list(view.text_columns)


@pytest.mark.parametrize(("time", "cells"), [("", 0), ("Time", 1), ("Epoch", 1)])
def test_an_interval_without_values_has_only_absent_cells(time: str, cells: int) -> None:
    view = plain(time=time, wide=True)
    row = printed_rows.text_row(view, view.text_columns, unknown()).split()
    assert len(row) == cells + len(view.text_columns)
    assert set(row[cells:]) == {"-"}


def test_an_unknown_number_of_compactions_is_not_zero() -> None:
    assert printed_rows.compactions_text(unknown()) == "Pen/-"


def test_compactions_are_sorted_by_progress() -> None:
    assert printed_rows.compactions_text(busy()) == "Pen/2 Min/58% Val/10%"


def test_default_columns_have_the_order_of_the_former_script() -> None:
    view = plain(percentiles=True)
    assert printed_rows.text_header(view, view.text_columns).split() == [
        *("Rds/s", "RdLat", "Wrts/s", "WrtLat", "%user", "%system", "%idle", "%iowait", "%steal"),
        *("vdar/s", "w/s", "rMB/s", "wMB/s", "eth0NetRxKb", "NetTxKb", "Rd99th", "Rd95th", "Wrt99th", "Wrt95th"),
    ]


@pytest.mark.parametrize("factor", [1.0, 10.0, 20.0])
def test_the_values_of_a_busy_node_stay_under_their_headers(factor: float) -> None:
    # With a factor of 20, the sample has the load of a fast node: 86,000 reads/s and 40 Mbit/s.
    view, sample = plain(), busy()
    values = {series: multiplied(value, factor) for series, value in sample.values.items()}
    header = printed_rows.text_header(view, view.text_columns)
    assert len(printed_rows.text_row(view, view.text_columns, replace(sample, values=values))) == len(header)


def test_one_gbit_per_second_stays_under_its_header() -> None:
    view = plain()
    values: dict[tuple[str, ...], Derived] = {
        ("node_network_receive_bytes_total", "eth0"): Rate(125e6, 1.0),
        ("node_disk_writes_completed_total", "vda"): Rate(120_000.0, 1.0),
        ("cassandra_client_requests_total", "Read"): Rate(123_456.7, 1.0),
    }
    row = printed_rows.text_row(view, view.text_columns, replace(unknown(), values=values))
    assert len(row) == len(printed_rows.text_header(view, view.text_columns))


@pytest.mark.parametrize("time_s", [1_700_000_000.0, 1_700_000_000.5, 1_700_000_000.25, 1_700_000_000.1])
def test_the_epoch_with_fractions_stays_under_its_header(time_s: float) -> None:
    view = plain(time="Epoch")
    row = printed_rows.text_row(view, view.text_columns, replace(unknown(), tick=Tick(time_s)))
    assert float(row.split()[0]) == time_s
    assert len(row) == len(printed_rows.text_header(view, view.text_columns))


def test_a_label_replaces_the_time() -> None:
    view = plain(time="Time")
    row, averages = (printed_rows.text_row(view, view.text_columns, busy(), label) for label in ("", "Average"))
    assert averages.split()[0] == "Average"
    assert averages.split()[1:] == row.split()[1:]
    assert len(averages) == len(row)


def test_a_normal_row_has_no_marks() -> None:
    assert printed_rows.marks(replace(busy(), events=()), 2.0) == ""
    assert printed_rows.marks(unknown(), 1.0) == ""


@pytest.mark.parametrize(("late_s", "marked"), [(0.0, False), (0.09, False), (0.11, True), (0.5, True)])
def test_a_late_row_shows_its_delay(late_s: float, marked: bool) -> None:
    text = printed_rows.marks(replace(unknown(), tick=Tick(1.0, late_s=late_s)), 1.0)
    assert text == (f"late by {1000 * late_s:.0f} ms" if marked else "")


def test_a_row_over_a_gap_shows_the_time_it_covers() -> None:
    sample = replace(busy(), events=())
    assert printed_rows.marks(sample, 2.0) == ""
    assert printed_rows.marks(sample, 1.0) == "rates averaged over 2.0 s"


def test_events_are_shown_as_text() -> None:
    sample = replace(unknown(), events=(Event("restart", "restarted"), Event("missed", "2 ticks missed")))
    assert printed_rows.marks(sample, 1.0) == "restarted; 2 ticks missed"


@pytest.mark.parametrize("text", ["one\ntwo", "one\r\ntwo", "one\u2028two"])
def test_an_event_text_stays_on_one_line(text: str) -> None:
    marks = printed_rows.marks(replace(unknown(), events=(Event("no_answer", text),)), 1.0)
    assert marks.split() == ["one", "two"]
    assert len(marks.splitlines()) == 1

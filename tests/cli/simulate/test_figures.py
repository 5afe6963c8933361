"""Rows and summaries of a simulation."""

from cli.simulate import interval_figures
from cli.simulate.interval_figures import StoreTotals, Totals, figures, store_totals
from exporters.metrics_page.self_metrics import SinkHealth

A, B = "influxdb+http://127.0.0.1:8086/casstat", "graphite://127.0.0.1:2003"
BEGIN = Totals(1_795_000_000.0, 10.0, 1.0, 0, 0, 0, 0, 0, 0.0, (StoreTotals(A), StoreTotals(B)))
END = Totals(
    1_795_000_002.0,
    12.0,
    2.5,
    600,
    900,
    4,
    20,
    60_000,
    1.5,
    (StoreTotals(A, 240_000), StoreTotals(B, 0, 7, 12, 31.25, 300, "connection refused")),
)


def test_a_store_is_the_sum_over_its_nodes() -> None:
    sinks = [
        SinkHealth(A, points=10, failures=2, lag_s=3.0),
        SinkHealth(A, up=False, points=5, refused_points=1, lag_s=8.0, reason="no route"),
    ]
    assert store_totals(sinks) == StoreTotals(A, 15, 1, 2, 8.0, 1, "no route")


def test_figures_are_differences_per_second() -> None:
    interval = figures(BEGIN, END)
    assert (interval.cpu_pct, interval.achieved, interval.due) == (75.0, 600, 900)
    assert (interval.pages_per_s, interval.samples_per_s, interval.serving_pct) == (10.0, 30_000.0, 75.0)
    assert [store.points_per_s for store in interval.stores] == [120_000.0, 0.0]
    assert interval.as_json()["stores"][1] == {
        "name": B,
        "points": 0,
        "points_per_s": 0.0,
        "refused": 7,
        "retried": 12,
        "lag_s": 31.25,
        "down": 300,
    }


def test_rows_are_aligned_with_their_headers() -> None:
    for serves in (False, True):
        *names, header = interval_figures.header([A, B], serves=serves)
        row = interval_figures.row(figures(BEGIN, END), serves=serves)
        assert len(header) == len(row)
        assert len(names) == 1
        assert [len(cell) > 0 for cell in header.split()] == [len(cell) > 0 for cell in row.split()]
        assert "600/900" in row
    assert len(interval_figures.header([A], serves=True)) == 1


def test_the_summary_names_the_store_that_is_down() -> None:
    first, a, b, served = interval_figures.summary(BEGIN, END, 250.4, nodes=300, serves=True)
    assert first == "simulated 300 nodes for 2.0 s: 600 of 900 ticks (66.7%), CPU 75% of a core, 250 MiB"
    assert a == f"{A}: accepted 240000 points (120000/s), refused 0, retried 0 requests, 0.0 s behind"
    assert b.endswith("retried 12 requests, 31.2 s behind, down for 300 nodes: connection refused")
    assert served == "served 20 pages (10.0/s) with 60000 samples (30000/s)"

"""The text alternatives of charts describe the measured phases only, as the tables do."""

from dataclasses import replace

from collector.clients.client_latency import Latency
from collector.clients.client_result import ClientInterval, ClientResult, Operation
from collector.model.histogram import Buckets
from exporters.gnuplot.plot_data import CLUSTER, Phase, Run
from exporters.report.charts.chart import Chart
from exporters.report.report_content import report_of
from tests.exporters.gnuplot.runs import BEGIN_S, synthetic
from tests.exporters.report.hostile_report import without_values

WARM_UP_S, RUN_S = 15, 60
PHASES = (
    Phase(BEGIN_S, BEGIN_S + WARM_UP_S, "warm-up", warm_up=True),
    Phase(BEGIN_S + WARM_UP_S, BEGIN_S + RUN_S, "main"),
)


def texts_of(merged: Run, *results: ClientResult) -> list[str]:
    """Return the texts of all charts of a run's report."""
    data = replace(without_values(), merged=merged, results=results)
    return [text for section in report_of(data).sections for block in section.blocks for text in _texts(block)]


def _texts(block: object) -> list[str]:
    return [text.partition("; darkest")[0] for text in block.texts] if isinstance(block, Chart) else []


def with_warm_up(merged: Run, factor: float) -> Run:
    """Return the run with the values of its warm-up multiplied."""

    def scaled(rows: object) -> list[object]:
        assert isinstance(rows, list | tuple)
        return [row if index >= WARM_UP_S else _scaled(row, factor) for index, row in enumerate(rows)]

    rows = {node: scaled(merged.rows[node]) for node in merged.rows}
    buckets = {word: scaled(merged.buckets[word]) for word in merged.buckets}
    return replace(merged, rows=rows, buckets=buckets, phases=PHASES)  # type: ignore[arg-type]


def _scaled(row: object, factor: float) -> object:
    if isinstance(row, Buckets):
        return Buckets(row.upper_bounds, tuple(count * factor for count in row.counts), row.low)
    return {name: value * factor if isinstance(value, float) else value for name, value in dict(row or {}).items()}  # type: ignore[call-overload]


def client(step_s: int, warm_up_ms: int) -> ClientResult:
    intervals = tuple(
        ClientInterval(
            BEGIN_S + second,
            BEGIN_S + second + step_s,
            100 * step_s,
            service=Latency({1_000_000 * (warm_up_ms if second < WARM_UP_S else 5): 100 * step_s}),
        )
        for second in range(0, RUN_S, step_s)
    )
    return ClientResult("csv", "tool", "file", (Operation("get", intervals),))


def test_they_do_not_depend_on_the_values_in_the_warm_up() -> None:
    merged = synthetic(["n1", "n2"], RUN_S, values=10)
    texts = texts_of(with_warm_up(merged, 1.0))
    assert any(text.startswith("reads: ") for text in texts)
    assert texts_of(with_warm_up(merged, 50.0)) == texts


def test_those_of_clients_omit_intervals_that_begin_in_the_warm_up() -> None:
    merged = with_warm_up(synthetic(["n1"], RUN_S, values=10), 1.0)
    for step_s in (1, 10):
        (text,) = [text for text in texts_of(merged, client(step_s, 900)) if text.startswith("client p99")]
        assert "900" not in text
        assert "5 to 5 ms" in text


def test_a_run_that_is_all_warm_up_has_no_measured_values() -> None:
    merged = synthetic(["n1"], 20, values=10)
    only = replace(merged, phases=(Phase(BEGIN_S, BEGIN_S + 20, "warm-up", warm_up=True),))
    assert "reads: no value in the measured phases" in texts_of(only)
    assert CLUSTER in only.rows

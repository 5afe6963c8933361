"""The text alternatives of charts describe the measured phases only, as the tables do."""

import shlex
from collections.abc import Mapping
from dataclasses import replace
from html import unescape

from collector.load_results.client_result import ClientInterval, ClientResult, Latency, Operation
from collector.model.histogram import Buckets
from collector.runs.run import ClientHost, RunCommand, RunNode, RunPhase
from collector.runs.run import Run as RecordedRun
from exporters.charts.experiment_plots import _PERCENTILES as PARETO_PERCENTILES
from exporters.charts.plot_data import CLUSTER, Phase, PlotData
from exporters.charts.plot_style import PERCENTILE_STYLES
from exporters.charts.plots import nodes
from exporters.charts.plots.overview import _LATENCY as OVERVIEW
from exporters.charts.plots.throughput_latency import _QUANTILES as PLOT_QUANTILES
from exporters.report.chart_sections import scatter_chart
from exporters.report.report import html_report, markdown_report, report_of
from exporters.report.report_blocks import Chart, Command, ReportData
from exporters.report.svg_chart import figure
from exporters.report.table_sections import reproduction
from exporters.report.time_charts import node_charts
from exporters.results.comparison.run_settings import RunSettings
from tests.exporters.charts.runs import BEGIN_S, synthetic
from tests.exporters.report.hostile_report import without_values

WARM_UP_S, RUN_S = 15, 60
PHASES = (
    Phase(BEGIN_S, BEGIN_S + WARM_UP_S, "warm-up", warm_up=True),
    Phase(BEGIN_S + WARM_UP_S, BEGIN_S + RUN_S, "main"),
)


def texts_of(merged: PlotData, *results: ClientResult) -> list[str]:
    """Return the texts of all charts of a run's report."""
    data = replace(without_values(), merged=merged, results=results)
    return [text for section in report_of(data).sections for block in section.blocks for text in _texts(block)]


def _texts(block: object) -> list[str]:
    return [text.partition("; darkest")[0] for text in block.texts] if isinstance(block, Chart) else []


def with_warm_up(merged: PlotData, factor: float) -> PlotData:
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


def test_cpu_garbage_collection_compactions_and_disk_are_below_the_latencies() -> None:
    merged = synthetic(["n1", "n2"], RUN_S, values=10)
    data = replace(without_values(), merged=merged)
    names = [name for panel in over_time_chart(data).panels for name in panel.legend]
    order = ["read p99", "GC", "pending compactions", "disk read", "disk written"]
    assert [name for name in names if name in order] == order


def over_time_chart(data: ReportData) -> Chart:
    blocks = (block for section in report_of(data).sections for block in section.blocks)
    return next(block for block in blocks if isinstance(block, Chart) and block.name == "over-time")


def test_a_short_peak_that_percentiles_of_long_intervals_hide_is_visible() -> None:
    merged = synthetic(["n1"], RUN_S, values=10)
    rows = [dict(row or {}) for row in merged.rows[CLUSTER]]
    rows[7] |= {"write_max_ms": 8888.0}
    chart = over_time_chart(replace(without_values(), merged=replace(merged, rows={**merged.rows, CLUSTER: rows})))
    (panel,) = [panel for panel in chart.panels if "slowest operation" in panel.legend]
    assert panel.legend["slowest operation"] == "max"
    values = next(line.values for line in panel.lines if line.name == "slowest operation")
    assert values[7] == 8888.0
    assert panel.scale.high >= 8888.0


def test_a_short_peak_of_a_node_is_visible_in_its_charts() -> None:
    merged = synthetic(["n1", "n2"], RUN_S, values=10)
    rows = [dict(row or {}) for row in merged.rows["n2"]]
    rows[7] |= {"read_max_ms": 8888.0}
    merged = replace(merged, rows={**merged.rows, "n2": rows})
    charts = node_charts(merged)
    peaks = [
        [
            max(map(float, filter(None, line.values)), default=0)
            for panel in chart.panels
            for line in panel.lines
            if line.name == "slowest operation"
        ]
        for chart in charts
    ]
    assert [8888.0] in peaks
    assert all(chart.panels[1].scale.high >= 8888.0 for chart in charts)
    assert any(8888.0 in column for column in nodes._data(merged, 1000).values())


def test_operations_other_than_reads_and_writes_are_in_all_charts() -> None:
    merged = synthetic(["n1", "n2"], RUN_S, values=10)
    rows = {node: [dict(row or {}) for row in merged.rows[node]] for node in (*merged.nodes, CLUSTER)}
    for node in ("n2", CLUSTER):
        # Rows of nodes omit the operations that do not occur.
        for row in rows[node]:
            row.update({"cas_writes_per_s": 10.0, "cas_write_p99_ms": 7.0, "cas_write_max_ms": 8.0})
    latencies = Buckets((0.001, 0.1), (0.0, 10.0), 0.0)
    buckets = {**merged.buckets, "cas_write": [latencies] * RUN_S}
    texts = texts_of(replace(merged, rows=rows, buckets=buckets, phases=PHASES))
    assert len([text for text in texts if text.startswith("conditional writes: 0 to 0 operations/s")]) == 1
    assert len([text for text in texts if text.startswith("conditional writes: 10 to 10 operations/s")]) == 2
    assert len([text for text in texts if text.startswith("conditional writes p99: 7 to 7 ms")]) == 2
    assert "conditional writes: 450 operations in complete intervals" in texts
    assert any(text.startswith("conditional writes: 450 in buckets from 1 to 100 ms") for text in texts)
    columns = nodes._data(replace(merged, rows=rows), 1000)
    assert {name for name in columns if "cas_write" in name} == {
        f"{number} {node} {name}"
        for number, node in ((1, "n1"), (2, "n2"))
        for name in ("cas_writes_per_s", "cas_write_p99_ms")
    }
    band_columns = nodes._band_data(replace(merged, rows=rows), 1000)
    assert band_columns["cas_writes_per_s_median"] == [5.0] * RUN_S


def test_the_frame_of_a_panel_does_not_cover_lines_at_its_edge() -> None:
    merged = synthetic(["n1"], RUN_S, values=10)
    html = figure(over_time_chart(replace(without_values(), merged=merged)))
    for panel in html.split('<div class="panel">')[1:]:
        if 'class="frame"' in panel:
            assert panel.index('class="frame"') < panel.index("<svg viewBox")


def test_the_command_that_repeats_a_run_names_its_nodes_cool_down_and_client_hosts() -> None:
    nodes = (RunNode("n1", "10.0.0.1"), RunNode("n2", "10.0.0.2:8778"))
    hosts = (ClientHost("c", "me@client"), ClientHost("here", ""))
    phases = (RunPhase("main", 0.0, 60.0), RunPhase("cool-down", 60.0, 70.2, measured=False))
    run = RecordedRun(
        "load", 0.0, 70.2, "0.1.0", nodes=nodes, command=RunCommand(("a", "b"), 0.0), phases=phases, client_hosts=hosts
    )
    blocks = list(reproduction(replace(without_values(), settings=RunSettings(run))))
    assert any("NODE... stands for the addresses of n1, n2." in str(block) for block in blocks)
    (command,) = [block.text for block in blocks if isinstance(block, Command)]
    assert command == ("casstat record NODE... --name load --cool-down 10s --client-host me@client -- a b")
    options = ("--client", "a b.csv", "--redact", "REDACTED", "10.0.0.1")
    blocks = list(reproduction(replace(without_values(), settings=RunSettings(replace(run, options=options)))))
    (command,) = [block.text for block in blocks if isinstance(block, Command)]
    assert command == (
        "casstat record --name load --client-host me@client --client 'a b.csv' --redact REDACTED 10.0.0.1 -- a b"
    )
    assert any("REDACTED stands for a secret." in str(block) for block in blocks)
    assert not any("NODE..." in str(block) for block in blocks)


def test_the_command_that_repeats_a_run_can_be_pasted_whatever_its_words_are() -> None:
    words = ("sh", "-c", "echo 'a  b'\n\techo ```<&\x1b", *(f"10.0.0.{number}:8778" for number in range(250)))
    run = RecordedRun("r", 0.0, 1.0, "0.1.0", command=RunCommand(words, 0.0), options=("--client", "x  y"))
    report = report_of(replace(without_values(), settings=RunSettings(run)))
    html, markdown = html_report(report), markdown_report(report)
    wanted = ["casstat", "record", "--name", "r", "--client", "x  y", "--", *words[:2], words[2].replace("\x1b", "?")]
    (pre,) = [part.partition("</pre>")[0] for part in html.split("<pre>")[1:]]
    fenced = markdown.partition("\n````\n")[2].partition("\n````\n")[0]
    for text in (unescape(pre), fenced):
        assert shlex.split(text) == [*wanted, *words[3:]]


def test_a_percentile_has_the_same_colour_in_all_charts() -> None:
    panels = scatter_panels()
    assert {name.split()[1]: style for panel in panels for name, style in panel.items()} == {
        name: PERCENTILE_STYLES[name][0] for name in ("p95", "p99")
    }
    assert {name: style.colour for name, style in OVERVIEW} == {
        name: colour for name, (colour, _) in PERCENTILE_STYLES.items()
    }
    for quantiles in (PLOT_QUANTILES, PARETO_PERCENTILES):
        assert all(colour == PERCENTILE_STYLES[name][0] for name, colour, _ in quantiles)


def test_lines_of_percentiles_have_no_gaps_that_would_hide_a_short_peak() -> None:
    assert {style.dash for _, style in OVERVIEW} == {"solid"}


def scatter_panels() -> list[Mapping[str, str]]:
    chart = scatter_chart(replace(synthetic(["n1"], RUN_S, values=10), phases=()))
    assert chart is not None
    return [panel.legend for panel in chart.panels]

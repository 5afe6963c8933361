"""The data of a synthetic report in which all external text is hostile."""

import random
from dataclasses import replace

from collector.load_results.client_result import ClientInterval, ClientResult, Latency, Operation
from collector.merge.coverage import NO_ANSWER, Gap, NodeCoverage, not_recorded
from collector.merge.node_settings import NodeSettings
from collector.runs.run import (
    ClientHost,
    ClockStep,
    NodeClock,
    Run,
    RunCluster,
    RunCommand,
    RunCondition,
    RunMark,
    RunNode,
    RunPhase,
)
from exporters.charts.plot_data import CLUSTER, Mark, Phase
from exporters.report.report_blocks import Baseline, Cost, ReportData
from exporters.results.comparison.comparison import Comparison, Report
from exporters.results.comparison.inference import Difference
from exporters.results.comparison.run_settings import RunSettings
from exporters.results.saturation.saturation import CPU, DISK, GENERATOR, Finding, HotTable, Saturation
from exporters.results.summary.phase_summary import Peak, PhaseSummary, coverage_cells
from exporters.rows.columns import Cell
from tests.exporters.charts.runs import BEGIN_S, synthetic

HOSTILE = "</script><img src=\"http://evil.example/x\" onerror='alert(1)'>\x1b]52;c;eA==\x07\u202e|`*&amp;"


def hostile(kind: str) -> str:
    return f"{kind} {HOSTILE}"


def facts(seconds: int = 120) -> ReportData:
    """Return facts with every kind of content: a missing node, events, client results, peaks and a cost."""
    names = [hostile(f"node-{number}") for number in (1, 2, 3)]
    merged = synthetic(names, seconds, missing=range(60, 70), values=10)
    middle_s, end_s = BEGIN_S + seconds / 2, BEGIN_S + seconds
    run_phases = (
        RunPhase(hostile("warm-up"), BEGIN_S, BEGIN_S + 10, measured=False),
        RunPhase(hostile("level 1"), BEGIN_S + 10, middle_s),
        RunPhase(hostile("level 2"), middle_s, end_s),
    )
    clocks = (NodeClock(BEGIN_S, 0.0021, 0.0004),)
    nodes = (
        *(
            RunNode(name, f"http://{name}", f"nodes/{name}", seconds, None, None, 1.0, "0.1.0", clocks)
            for name in names
        ),
        RunNode("", hostile("10.0.0.9"), problem=hostile("refused")),
    )
    run = Run(
        hostile("run"),
        BEGIN_S,
        end_s,
        "0.1.0",
        {hostile("key"): hostile("value")},
        nodes,
        RunCommand(("load", hostile("argument")), BEGIN_S, end_s, 3),
        run_phases,
        (RunMark(middle_s, hostile("mark")),),
        (hostile("other"),),
        10.0,
        (ClientHost(hostile("client"), "", "client-hosts/c", seconds, interval_s=1.0, casstat="0.1.0"),),
        (
            RunCondition(hostile("read_p99_ms > 1"), met=True, reasons=(hostile("read_p99_ms is 1.25"),)),
            RunCondition("read_timeouts > 9", met=False),
            RunCondition("reads < 1"),
        ),
        (RunCluster(hostile("cluster"), (names[0],), (hostile("10.0.0.10"),)), RunCluster("", (names[1],))),
        (ClockStep(BEGIN_S + 15, -60.0),),
    )
    gap = Gap(BEGIN_S + 60, BEGIN_S + 70, NO_ANSWER, 10)
    incomplete = (
        NodeCoverage(names[1], 1.0, seconds - 10, 10, (gap,)),
        not_recorded(hostile("10.0.0.9"), 1.0, (BEGIN_S + 10, end_s), hostile("refused")),
    )
    settings = NodeSettings(*map(hostile, ("5.0.6", "schema", "cluster", "dc", "rack", "jolokia")))
    baseline_run = replace(run, name=hostile("baseline"), nodes=nodes[:2])
    baseline = RunSettings(baseline_run, dict.fromkeys(names[:2], replace(settings, cassandra=hostile("4.1.9"))))
    values: dict[str, Cell] = {
        **coverage_cells([*incomplete, *(NodeCoverage(name, 1.0, seconds, 0) for name in names[::2])], 3, 1),
        **{f"{word}s_per_s": 900.0 for word in ("read", "write")},
        **{f"read_{name}_ms": 1.25 for name in ("mean", "p50", "p95", "p99", "p999", "max")},
        "reads": 45_000,
        "writes": 45_000,
        "read_timeouts": 4,
        "client_ops_per_s": 1800.0,
        "client_errors_per_s": 0.5,
        "client_error_share": 0.00028,
        "client_count": 900,
        "client_latency": "service",
        "client_p99_ms": 2.5,
    }
    peak = Peak(97.0, names[0], BEGIN_S + 30)
    process = {"process_cpu_pct": Peak(99.0, hostile("client"), BEGIN_S + 31, hostile("java"))}
    summaries = [
        PhaseSummary(
            phase.name, phase.begin_s, phase.end_s, values, {"cpu_busy_pct": peak}, process, incomplete=incomplete
        )
        for phase in run_phases[1:]
    ]
    phases = tuple(Phase(phase.begin_s, phase.end_s, phase.name, not phase.measured) for phase in run_phases)
    marks = (Mark(BEGIN_S + 20, names[0], hostile("gc"), hostile("pause")),)
    return ReportData(
        RunSettings(run, dict.fromkeys(names, settings)),
        replace(merged, name=run.name, phases=phases, marks=marks, zone_s=3600),
        "one clock",
        summaries,
        {names[0]: 2, names[1]: 0},
        (client_result(seconds),),
        Cost(281, hostile("USD")),
        Baseline(baseline, compared()),
        limited_by_cpu(names[0]),
        incomplete,
    )


def compared() -> Report:
    """Return a comparison with a significant difference, one without a test, and a warning."""
    phase = hostile("level 1")
    differs = Difference(2.0, 2.5, 0.25, 0.2, 0.3, 0.001)
    unknown = Difference(None, 1.0, reason=hostile("no distribution"))
    return Report(
        [hostile("baseline")],
        [hostile("run")],
        [hostile("warning")],
        [
            Comparison(phase, "client_p99_ms", differs, adjusted_p=0.002),
            Comparison(phase, hostile("client"), unknown),
            Comparison("total", "read_slow_share", differs, "over 2.3 ms", 0.2),
        ],
        [],
    )


def limited_by_cpu(node: str) -> Saturation:
    """Return the result for a run that is limited by the CPU of a node; the load generator was not measured."""
    table = HotTable(hostile("keyspace"), hostile("table"), 0.93)
    cpu = Finding(CPU, node, BEGIN_S + 25, {"cpu_busy": 0.97, "cpu_waiting": 0.6}, table)
    idle_disk = Finding(DISK, node, None, {"disk_util": 0.02})
    return Saturation(cpu, (idle_disk, cpu), (GENERATOR,))


def client_result(seconds: int) -> ClientResult:
    """Return a result with one interval per second and a gap of five seconds."""
    generator = random.Random(1)  # noqa: S311
    intervals = tuple(
        ClientInterval(
            BEGIN_S + second,
            BEGIN_S + second + 1,
            100,
            service=Latency({generator.randrange(1_000_000, 9_000_000): 1 for _ in range(100)}),
        )
        for second in range(seconds)
        if not 80 <= second < 85
    )
    return ClientResult(
        "csv", hostile("tool"), hostile("file"), (Operation(hostile("get"), intervals),), notes=(hostile("note"),)
    )


def without_values() -> ReportData:
    """Return facts in which every value is absent: no cluster rows, summary, client, command or event."""
    full = facts(20)
    nothing = [None] * 20
    merged = replace(
        full.merged,
        rows=dict.fromkeys((CLUSTER, "n1"), nothing),
        buckets={"read": nothing, "write": nothing},
        marks=(),
        phases=(),
    )
    run = Run("empty", BEGIN_S, BEGIN_S + 20, "0.1.0", nodes=(RunNode("n1", "n1", "nodes/n1", 20),))
    return ReportData(RunSettings(run), merged, "one clock", [])

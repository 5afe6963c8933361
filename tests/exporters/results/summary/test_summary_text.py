"""The summary as text, for phases with and without data."""

from dataclasses import replace

from collector.merge.coverage import NO_ANSWER, NOT_SAMPLED, Gap, NodeCoverage, not_recorded
from collector.runs.run import Run, RunPhase
from exporters.results.summary.phase_summary import (
    Peak,
    PhaseSummary,
    coverage_cells,
    coverage_texts,
    incomplete_nodes,
    node_text,
)
from exporters.results.summary.summary_text import few_values_texts, incomplete_texts, no_summary_text, summary_lines
from tests.collector.zones import local_zone
from tests.exporters import golden

VALUES = {
    f"{operation}{name}": number
    for operation, factor in (("read", 1.0), ("write", 2.5))
    for name, number in {
        "s": 740_736 * factor,
        "s_per_s": 12_345.6 * factor,
        "_mean_ms": 0.25 * factor,
        "_p50_ms": 0.2 * factor,
        "_p95_ms": 0.9 * factor,
        "_p99_ms": 1.85 * factor,
        "_p999_ms": 12.5 * factor,
        "_max_ms": 1024.0 * factor,
        "_timeouts": 0,
        "_unavailables": int(4 * factor),
        "_failures": None,
    }.items()
}
PEAKS = {
    "cpu_busy_pct": Peak(97.5, "10.0.0.1", 1_700_000_000.0),
    "net_rx_kbit_per_s": Peak(123_456.7, "n2", 1_700_000_060.0),
}
CLIENT_PEAKS = {
    "run_queue": Peak(12, "client", 1_700_000_000.0),
    "process_cpu_pct": Peak(187.5, "client", 1_700_000_060.0, "java (4242)"),
}


def test_the_text_has_a_row_per_phase_and_operation() -> None:
    phases = [
        PhaseSummary("main", 1000.0, 1060.0, VALUES, {}),
        PhaseSummary("a phase without reads", 1060.0, 1120.4, {}, {}),
        PhaseSummary("total", 1000.0, 1120.4, VALUES, PEAKS, CLIENT_PEAKS),
    ]
    with local_zone("UTC0"):
        golden.check("run_summary.txt", "\n".join(summary_lines(phases)) + "\n")


def test_the_time_of_a_phase_is_that_of_its_complete_intervals() -> None:
    (row, *_) = summary_lines([PhaseSummary("main", 1000.0, 1008.2, {**VALUES, "interval_s": 7.06}, {})])[2:]
    assert row.split()[:3] == ["main", "7", "s"]


def test_operations_that_occur_in_a_phase_have_rows_and_a_total() -> None:
    others = {"range_reads": 500, "range_reads_per_s": 50.0, "range_read_p99_ms": 3.0, "cas_writes": 0}
    phases = [
        PhaseSummary("main", 1000.0, 1060.0, VALUES, {}),
        PhaseSummary("scan", 1060.0, 1120.0, {**VALUES, **others, "operations_per_s": 43_259.6}, {}),
    ]
    rows = [line.split("  ") for line in summary_lines(phases)[2:10]]
    cells = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    assert [row[2 if number % 4 == 0 else 0] for number, row in enumerate(cells)] == [
        *("reads", "writes", "range reads", "all operations") * 2
    ]
    assert cells[6] == ["range reads", "50", "-", "-", "-", "3.00", "-", "-", "500", "-", "-", "-"]
    assert cells[7] == ["all operations", "43,260"]


def test_operations_that_only_fail_have_rows() -> None:
    errors = {"range_reads": 0, "range_read_timeouts": 35, "view_writes": None, "view_write_failures": 21}
    (phase,) = [PhaseSummary("main", 1000.0, 1060.0, {**VALUES, **errors}, {})]
    rows = {
        title: line.split()[-3:]
        for line in summary_lines([phase])
        for title in ("range reads", "view writes", "serial reads")
        if title in line
    }
    assert rows == {"range reads": ["35", "-", "-"], "view writes": ["-", "-", "21"]}


def test_percentiles_with_few_values_above_them_are_named() -> None:
    client = {"client_count": 19, **{f"client_{name}_ms": 1.0 for name in ("p50", "p95", "p99", "p999")}}
    for reads, names in ((10_000, ""), (9_999, "p99.9"), (999, "p99 and p99.9"), (199, "p95 and p99 and p99.9")):
        texts = few_values_texts([PhaseSummary("main", 0.0, 1.0, {**VALUES, **client, "reads": reads}, {})])
        assert texts[:-1] == (
            [f"main: fewer than 10 values are above {names} of reads (n = {reads:,}); the next run may differ by much"]
            if names
            else []
        )
        assert "p50 and p95 and p99 and p99.9 of the clients' operations (n = 19)" in texts[-1]


def test_percentiles_without_a_known_number_of_values_are_not_named() -> None:
    assert few_values_texts([PhaseSummary("main", 0.0, 1.0, {"read_p99_ms": 1.0, "reads": None}, {})]) == []


def test_a_run_without_a_summary_states_why() -> None:
    warm_up = RunPhase("warm-up", 0.0, 10.0, measured=False)
    for phases, reason in (
        ((), "no phase is long enough to contain a complete interval"),
        ((warm_up, RunPhase("main", 10.0, 10.5)), "no phase is long enough to contain a complete interval"),
        ((warm_up,), "the command ended within the warm-up"),
    ):
        assert no_summary_text(Run("load", 0.0, 11.0, "0.1.0", phases=phases)) == reason


def test_a_phase_without_nodes_covers_no_time() -> None:
    absent = NodeCoverage("n1", 1.0, 70, 70, (Gap(1000.0, 1070.0, NOT_SAMPLED, 70, is_open=True),))
    values = {"interval_s": None, **coverage_cells([absent], 0, 0)}
    lines = summary_lines([PhaseSummary("main", 1000.0, 1070.0, values, {}, incomplete=(absent,))])
    assert lines[2].split()[:6] == ["main", "0", "s", "0", "of", "1"]
    assert "main: 1 of 1 node not included" in lines


def test_a_phase_with_the_name_of_the_total_keeps_its_gaps() -> None:
    frozen = (NodeCoverage("n1", 1.0, 40, 6, (Gap(1010.0, 1017.0, NO_ANSWER, 6),)),)
    named_total = PhaseSummary("total", 1000.0, 1040.0, VALUES, {}, incomplete=frozen)
    total = PhaseSummary("total", 990.0, 1040.0, VALUES, {}, incomplete=frozen)
    first = PhaseSummary("a", 990.0, 1000.0, VALUES, {})
    for summaries in ([first, named_total, total], [named_total], [first, replace(named_total, name="b"), total]):
        assert len(incomplete_texts(summaries, str)) == 1


def test_the_text_states_which_nodes_and_intervals_a_phase_lacks() -> None:
    frozen = NodeCoverage("n1", 1.0, 70, 6, (Gap(1010.0, 1017.0, NO_ANSWER, 6),))
    killed = NodeCoverage("n2", 1.0, 70, 30, (Gap(1040.0, 1070.0, NO_ANSWER, 30, is_open=True),))
    agentless = NodeCoverage("n3", 1.0, 70, 30, (Gap(1040.0, 1070.0, NOT_SAMPLED, 30, restarted=True),))
    unreached = not_recorded("n4", None, (1000.0, 1070.0), "connection refused")
    slow = NodeCoverage("n5", 100.0, 0, 0)
    complete = NodeCoverage("n6", 1.0, 70, 0)
    phases = [
        PhaseSummary("main", 1000.0, 1070.0, {**VALUES, **coverage_cells([complete], 1, 0)}, {}),
        PhaseSummary(
            "late\n",
            1000.0,
            1070.0,
            {**VALUES, **coverage_cells([frozen, killed, agentless, unreached, slow, complete], 4, 2)},
            {},
            incomplete=incomplete_nodes([frozen, killed, agentless, unreached, slow, complete]),
        ),
    ]
    with local_zone("UTC0"):
        lines = summary_lines(phases)
    assert [line for line in lines if line.startswith("late: ")] == [
        "late: 2 of 6 nodes not included",
        "late: n4: not recorded: connection refused",
        "late: n5: no complete interval of 100 s",
        "late: n2: 40 of 70 intervals, did not answer from 00:17:20 until the end",
        "late: n3: 40 of 70 intervals, was not sampled from 00:17:20 to 00:17:50 (restarted)",
        "late: n1: 64 of 70 intervals, did not answer from 00:16:50 to 00:16:57",
        "late: the nodes' rates are lower bounds: operations in missing intervals count only if a later reading"
        " includes them",
    ]
    assert lines[2].split()[:4] == ["main", "70", "s", "all"]
    assert " ".join(lines[4].split()[:8]) == "late 70 s 4 of 8, 3 partly"
    assert phases[1].values["nodes_missing"] == 2
    assert phases[1].values["node_intervals_missing"] == 66


def test_only_the_longest_gaps_and_the_worst_nodes_are_listed() -> None:
    gaps = tuple(Gap(1000.0 + 10 * number, 1001.0 + 11 * number, NO_ANSWER, 1 + number) for number in range(5))
    node = NodeCoverage("n1", 1.0, 70, 15, gaps)
    assert node_text(node, "{:.0f}".format) == (
        "55 of 70 intervals, did not answer from 1020 to 1023, did not answer from 1030 to 1034,"
        " did not answer from 1040 to 1045, 2 shorter gaps"
    )
    assert coverage_texts([node] * 7, str)[5:] == ["2 more nodes with missing intervals"]

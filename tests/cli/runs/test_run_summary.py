"""The summary of a phase covers exactly the ticks inside the phase."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from cli.errors import CasstatError
from cli.recordings.views import completed
from cli.runs.run_summary import SUMMARY_FILE, RunSummary, read_summaries, summary_of
from cli.runs.run_views import run_views
from collector.model.snapshot import Snapshot
from collector.node.catalogue import CATALOGUE
from collector.runs.run import Run, RunNode, RunPhase
from collector.runs.run_file import read_run, write_run
from tests.cli.recordings.runs_with_settings import run_with_settings, settings
from tests.collector.merge.recorded_nodes import BEGIN_S, METRICS, busy, record

PENDING = "cassandra_compaction_pending"
TICKS = 60
# How long a read takes, in microseconds: SLOW_US in the first 20 ticks, and FAST_US after them.
SLOW_US, FAST_US = 50_000, 500


def duration_us(tick: int) -> int:
    return SLOW_US if tick < 20 else FAST_US


def with_pending(ticks: list[Snapshot], values: Mapping[int, int]) -> list[Snapshot]:
    """Return the ticks with the given numbers of pending compactions, and with none in all other ticks."""
    changed = []
    for number, snapshot in enumerate(ticks):
        (scrape,) = snapshot.scrapes
        scrape = replace(scrape, values={**scrape.values, (PENDING,): values.get(number, 0)})
        changed.append(replace(snapshot, scrapes=(scrape,)))
    return changed


def summarised(folder: Path, phases: list[RunPhase], **node: Mapping[int, int]) -> RunSummary:
    """Return the summary of a run with the nodes n1 and n2; `node` maps a name to pending compactions by tick."""
    metrics = (*METRICS, CATALOGUE[PENDING])
    for name in ("n1", "n2"):
        ticks = with_pending(busy(name, TICKS, lambda tick: [duration_us(tick)] * 10), node.get(name, {}))
        record(folder / "nodes" / name, ticks, metrics=metrics)
    nodes = tuple(RunNode(name, f"http://{name}", f"nodes/{name}", TICKS, interval_s=1.0) for name in ("n1", "n2"))
    run = Run("load", BEGIN_S, BEGIN_S + TICKS, "0.1.0", nodes=nodes, phases=tuple(phases))
    write_run(folder, run)
    return completed(summary_of(run_views(folder, run)))


def test_each_phase_counts_its_own_operations(tmp_path: Path) -> None:
    phases = [
        RunPhase("warm-up", BEGIN_S, BEGIN_S + 10.0, measured=False),
        RunPhase("slow", BEGIN_S + 10.0, BEGIN_S + 19.5),
        RunPhase("short", BEGIN_S + 19.5, BEGIN_S + 20.2),
        RunPhase("fast", BEGIN_S + 20.2, BEGIN_S + 40.0),
    ]
    slow, fast, total = summarised(tmp_path, phases).phases
    # Of the ticks at whole seconds, 9 lie completely inside the slow phase and 19 inside the fast one.
    assert (slow.name, slow.values["reads"], slow.values["reads_per_s"]) == ("slow", 2 * 9 * 10, 20.0)
    assert (fast.name, fast.values["reads"], fast.values["reads_per_s"]) == ("fast", 2 * 19 * 10, 20.0)
    assert (total.name, total.values["reads"]) == ("total", 2 * 30 * 10)
    assert slow.values["read_p99_ms"] == pytest.approx(SLOW_US / 1000, rel=0.2)
    assert fast.values["read_p99_ms"] == pytest.approx(FAST_US / 1000, rel=0.2)
    # A third of the reads were slow.
    assert total.values["read_p50_ms"] == pytest.approx(FAST_US / 1000, rel=0.2)
    assert total.values["read_p99_ms"] == pytest.approx(SLOW_US / 1000, rel=0.2)


def test_peaks_belong_to_the_phase_of_their_tick(tmp_path: Path) -> None:
    phases = [RunPhase("first", BEGIN_S + 10.0, BEGIN_S + 20.0), RunPhase("second", BEGIN_S + 20.0, BEGIN_S + 30.0)]
    # The values are set in the ticks just outside and just inside the phases.
    n1 = {10: 900, 11: 5, 20: 7, 31: 900}
    n2 = {21: 8, 30: 9}
    first, second, total = summarised(tmp_path, phases, n1=n1, n2=n2).phases
    peaks = {phase.name: phase.peaks["compactions_pending"] for phase in (first, second, total)}
    assert {name: (peak.value, peak.node, peak.time_s - BEGIN_S) for name, peak in peaks.items()} == {
        "first": (7, "n1", 20.0),
        "second": (9, "n2", 30.0),
        "total": (9, "n2", 30.0),
    }


def test_ticks_lost_in_the_phases_are_counted(tmp_path: Path) -> None:
    phases = [RunPhase("main", BEGIN_S + 10.0, BEGIN_S + 30.0)]
    ticks = busy("n1", TICKS)
    missing = [*ticks[:15], replace(ticks[17], tick=replace(ticks[17].tick, missed=2)), *ticks[18:]]
    record(tmp_path / "nodes" / "n1", missing)
    nodes = (RunNode("n1", "http://n1", "nodes/n1", TICKS, interval_s=1.0),)
    run = Run("load", BEGIN_S, BEGIN_S + TICKS, "0.1.0", nodes=nodes, phases=tuple(phases))
    write_run(tmp_path, run)
    summary = completed(summary_of(run_views(tmp_path, run)))
    assert summary.lost == {"n1": 2}
    # No operation is lost, because the counters kept increasing.
    assert summary.phases[0].values["reads"] == 20 * 10


def test_ticks_are_lost_if_the_agent_did_not_run(tmp_path: Path) -> None:
    record(tmp_path / "nodes" / "n1", busy("n1", 20))
    nodes = (RunNode("n1", "http://n1", "nodes/n1", TICKS, interval_s=1.0),)
    run = Run("load", BEGIN_S, BEGIN_S + TICKS, "0.1.0", nodes=nodes, phases=(RunPhase("m", BEGIN_S, BEGIN_S + 60.0),))
    write_run(tmp_path, run)
    # The phase contains at least 59 complete intervals, and 19 of its ticks were recorded.
    assert completed(summary_of(run_views(tmp_path, run))).lost == {"n1": 40}


def test_operations_of_an_outage_that_began_before_a_phase_do_not_count(tmp_path: Path) -> None:
    ticks = [
        replace(snapshot, scrapes=()) if 5 <= number < 12 else snapshot
        for number, snapshot in enumerate(busy("n1", TICKS))
    ]
    record(tmp_path / "nodes" / "n1", ticks)
    nodes = (RunNode("n1", "http://n1", "nodes/n1", TICKS, interval_s=1.0),)
    phases = (RunPhase("main", BEGIN_S + 10.0, BEGIN_S + 30.0),)
    run = Run("load", BEGIN_S, BEGIN_S + TICKS, "0.1.0", nodes=nodes, phases=phases)
    write_run(tmp_path, run)
    (main,) = completed(summary_of(run_views(tmp_path, run))).phases
    # The first reading after the outage is in tick 12.
    assert main.values["reads"] == 18 * 10


def test_only_the_recordings_of_the_run_count(tmp_path: Path) -> None:
    for folder in (".recovery/nodes/n3", ".agents/1"):
        record(tmp_path / folder, busy("n3", TICKS))
    (main,) = summarised(tmp_path, [RunPhase("main", BEGIN_S + 10.0, BEGIN_S + 30.0)]).phases
    assert main.values["reads"] == 2 * 20 * 10


def test_an_earlier_session_with_a_longer_interval_does_not_matter(tmp_path: Path) -> None:
    record(tmp_path / "nodes" / "n1", busy("n1", 10, begin_s=BEGIN_S - 120.0, interval_s=10.0), interval_s=10.0)
    phases = [RunPhase("main", BEGIN_S + 10.0, BEGIN_S + 30.0)]
    (main,) = summarised(tmp_path, phases).phases
    assert main.values["reads"] == 2 * 20 * 10


def test_a_phase_without_ticks_has_a_summary_without_values(tmp_path: Path) -> None:
    (later,) = summarised(tmp_path, [RunPhase("later", BEGIN_S + 1000.0, BEGIN_S + 1010.0)]).phases
    assert (later.values["nodes"], later.values["nodes_missing"], later.values["node_intervals_missing"]) == (0, 2, 20)
    assert (later.values["reads"], later.values["reads_per_s"], later.values["interval_s"]) == (None, None, None)
    assert later.peaks == {}


def test_phases_that_are_too_short_are_left_out(tmp_path: Path) -> None:
    assert summarised(tmp_path, [RunPhase("short", BEGIN_S + 1000.0, BEGIN_S + 1000.7)]).phases == []
    # No interval lies completely inside the longer ones.
    for begin_s, length_s in ((BEGIN_S + 1000.1, 1.3), (BEGIN_S + 20.2, 0.7), (BEGIN_S + 20.3, 1.3)):
        run = replace(read_run(tmp_path), phases=(RunPhase("short", begin_s, begin_s + length_s),))
        assert completed(summary_of(run_views(tmp_path, run))).phases == []
    assert completed(summary_of(run_views(tmp_path, Run("load", BEGIN_S, None, "0.1.0", phases=())))).phases == []


def test_an_error_other_than_missing_data_is_reported(tmp_path: Path) -> None:
    run = Run("load", BEGIN_S, BEGIN_S + 10.0, "0.1.0", phases=(RunPhase("main", BEGIN_S, BEGIN_S + 10.0),))
    write_run(tmp_path, run)
    with pytest.raises(CasstatError, match="no recordings found"):
        completed(summary_of(run_views(tmp_path, run)))


def test_a_named_pipe_is_no_summary(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / SUMMARY_FILE)
    assert read_summaries(tmp_path) == []


def test_a_run_that_is_merged_in_several_processes_has_a_summary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("collector.merge.merge.SINGLE_TASK_NODES", 1)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    run = run_with_settings(tmp_path, [settings(number) for number in range(2)])
    assert [phase.values["reads_per_s"] for phase in completed(summary_of(run_views(tmp_path, run))).phases] == [20]

"""The peaks of a client host are attributed to the phase of their tick, and CPU peaks to the busiest process."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from cli.errors import CasstatError
from cli.recordings.views import completed
from cli.runs.run_summary import client_peaks_of
from cli.runs.run_views import run_views
from collector.model.metric import Values
from collector.model.snapshot import Snapshot
from collector.node.catalogue import CATALOGUE
from collector.node.host.busy_processes import CPU_TIME
from collector.node.host.cpu import TICKS_PER_S
from collector.runs.run import ClientHost, NodeClock, Run, RunPhase
from exporters.results.summary.phase_summary import Peak
from tests.collector.merge.recorded_nodes import BEGIN_S, METRICS, busy, record

RUNNABLE = "node_procs_running"
TICKS = 40
PHASES = [RunPhase("first", BEGIN_S + 10.0, BEGIN_S + 20.0), RunPhase("second", BEGIN_S + 20.0, BEGIN_S + 30.0)]


def sampled(name: str, queues: dict[int, int], cpu_s: dict[str, dict[int, float]]) -> list[Snapshot]:
    """Return a client host's ticks; `queues` holds run queue lengths by tick, `cpu_s` CPU time by process and tick."""
    ticks = []
    used: dict[str, float] = dict.fromkeys(cpu_s, 0.0)
    for number, snapshot in enumerate(busy(name, TICKS)):
        (scrape,) = snapshot.scrapes
        for process, by_tick in cpu_s.items():
            used[process] += by_tick.get(number, 0.0)
        values: Values = {(RUNNABLE,): queues.get(number, 1)}
        for process, value in used.items():
            values[CPU_TIME.name, process, "42"] = round(value * TICKS_PER_S)
        ticks.append(replace(snapshot, scrapes=(replace(scrape, source="cpu", values=values),)))
    return ticks


def peaks(folder: Path, *hosts: ClientHost) -> list[Mapping[str, Peak]]:
    run = Run("load", BEGIN_S, BEGIN_S + TICKS, "0.1.0", phases=tuple(PHASES), client_hosts=hosts)
    return list(completed(client_peaks_of(run_views(folder, run), PHASES)).values())


def host(folder: Path, name: str, ticks: list[Snapshot], clock_s: float = 0.0, address: str = "") -> ClientHost:
    """Record a client host's ticks in `client-hosts/NAME/`, and return the host."""
    record(folder / "client-hosts" / name, ticks, metrics=(*METRICS, CATALOGUE[RUNNABLE], CPU_TIME), sources=())
    clocks = (NodeClock(BEGIN_S, clock_s, 0.001),)
    return ClientHost(ticks[0].node, address, f"client-hosts/{name}", TICKS, interval_s=1.0, clocks=clocks)


def test_peaks_are_those_of_the_phase_and_of_the_busiest_process(tmp_path: Path) -> None:
    # The run queues are set in the ticks just outside and just inside the phases.
    one = sampled("c1", {10: 90, 11: 5, 31: 90}, {"java": {12: 3.5, 25: 0.5}, "python3": {12: 1.0, 25: 0.75}})
    two = sampled("c2", {20: 4, 21: 8}, {"java": {13: 1.5}})
    first, second = peaks(tmp_path, host(tmp_path, "c1", one), host(tmp_path, "c2", two))
    assert first["run_queue"] == Peak(5, "c1", BEGIN_S + 11.0)
    assert first["process_cpu_pct"] == Peak(350.0, "c1", BEGIN_S + 12.0, "java (42)")
    assert second["run_queue"] == Peak(8, "c2", BEGIN_S + 21.0)
    assert second["process_cpu_pct"] == Peak(75.0, "c1", BEGIN_S + 25.0, "python3 (42)")


def test_a_client_hosts_clock_is_corrected(tmp_path: Path) -> None:
    first, second = peaks(tmp_path, host(tmp_path, "c1", sampled("c1", {24: 7}, {}), clock_s=5.0))
    assert first["run_queue"] == Peak(7, "c1", BEGIN_S + 19.0)
    assert second["run_queue"].value == 1
    # The recording contains no processes.
    assert "process_cpu_pct" not in second


@pytest.mark.parametrize(
    ("addresses", "labels"),
    [(("ssh://gen1", "ssh://gen2"), ("gen1", "gen2")), (("ssh://gen1", "ssh://gen1"), ("gen1#1", "gen1#2"))],
)
def test_hosts_with_the_same_name_are_told_apart_by_their_addresses(
    addresses: tuple[str, str], labels: tuple[str, str], tmp_path: Path
) -> None:
    one, two = sampled("vm", {12: 5, 21: 3}, {}), sampled("vm", {17: 8}, {})
    first, second = peaks(
        tmp_path,
        host(tmp_path, "vm", one, address=addresses[0]),
        # Its clock is 5 s ahead.
        host(tmp_path, "vm~2", two, 5.0, addresses[1]),
    )
    assert first["run_queue"] == Peak(8, labels[1], BEGIN_S + 12.0)
    assert second["run_queue"] == Peak(3, labels[0], BEGIN_S + 21.0)


def test_an_invalid_address_is_reported_if_it_is_needed(tmp_path: Path) -> None:
    ticks = sampled("vm", {}, {})
    with pytest.raises(CasstatError, match="'ssh://-F' is not a valid address"):
        peaks(tmp_path, *(host(tmp_path, folder, ticks, address="ssh://-F") for folder in ("vm", "vm~2")))


def test_a_host_without_a_recording_has_no_peaks(tmp_path: Path) -> None:
    assert peaks(tmp_path, ClientHost("c1", "", problem="this machine cannot be recorded")) == [{}, {}]

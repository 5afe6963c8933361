"""The resource that limited a run is found in the recordings of its nodes and client hosts."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from cli.recordings.views import completed
from cli.runs.run_saturation import saturation_of
from cli.runs.run_views import run_views
from collector.model.metric import Metric, Series, Value, Values
from collector.model.snapshot import Snapshot
from collector.node.catalogue import CATALOGUE
from collector.node.host.busy_processes import CPU_TIME, CPUS, THREAD_CPU_TIME
from collector.node.host.cpu import TICKS_PER_S
from collector.node.host.network import SPEED
from collector.node.host.process import ALLOWED_CPUS
from collector.runs.run import ClientHost, Run, RunNode, RunPhase
from collector.runs.run_file import write_run
from exporters.results.saturation.saturation import CPU, GENERATOR, HOT_NODE, NETWORK, HotTable, Resource, Saturation
from tests.collector.merge.recorded_nodes import BEGIN_S, METRICS, busy, record

TICKS = 60
BY_CPU, PROCESS = CATALOGUE["node_cpu_seconds_total"], CATALOGUE["casstat_process_user_seconds_total"]
RECEIVED, SENT = (CATALOGUE[f"node_network_{way}_bytes_total"] for way in ("receive", "transmit"))
TABLE_READS = CATALOGUE["cassandra_table_operations_total"]
NODE_PID = "41"


def node_ticks(name: str, busy_share: float, process_share: float, allowed_cpus: str) -> list[Snapshot]:
    """Return a node's ticks on a machine with two processors; processor 1 is idle, and processor 0 partly busy."""
    ticks = []
    for number, snapshot in enumerate(busy(name, TICKS)):
        (scrape,) = snapshot.scrapes
        ticks_busy = round(number * busy_share * TICKS_PER_S)
        host: Values = {
            (BY_CPU.name, "0", "user"): ticks_busy,
            (BY_CPU.name, "0", "idle"): number * TICKS_PER_S - ticks_busy,
            (BY_CPU.name, "1", "user"): 0,
            (BY_CPU.name, "1", "idle"): number * TICKS_PER_S,
        }
        process: Values = {
            (ALLOWED_CPUS.name,): allowed_cpus,
            (PROCESS.name,): round(number * process_share * TICKS_PER_S),
        }
        scrapes = (
            scrape,
            replace(scrape, source="cpu", values=host, origin="boot"),
            replace(scrape, source="process", values=process, origin="41"),
        )
        ticks.append(replace(snapshot, scrapes=scrapes))
    return ticks


def client_ticks(cpu_s_by_pid: dict[str, float], cpus: int) -> list[Snapshot]:
    """Return the ticks of a client host whose processes use this much CPU time per second, on `cpus` processors."""
    ticks = []
    for number, snapshot in enumerate(busy("c1", TICKS)):
        (scrape,) = snapshot.scrapes
        values: Values = {}
        for pid, cpu_s in cpu_s_by_pid.items():
            values[CPU_TIME.name, "java", pid] = round(number * cpu_s * TICKS_PER_S)
            values[CPUS.name, "java", pid] = cpus
        ticks.append(replace(snapshot, scrapes=(replace(scrape, source="processes", values=values, origin="boot"),)))
    return ticks


def with_values(ticks: list[Snapshot], values: Callable[[int], Values]) -> list[Snapshot]:
    """Return the ticks with more values in their last scrape; `values` returns those of a tick by its number."""
    result = []
    for number, snapshot in enumerate(ticks):
        *others, last = snapshot.scrapes
        result.append(replace(snapshot, scrapes=(*others, replace(last, values={**last.values, **values(number)}))))
    return result


def thread(pid: str, tid: int, cpu_s: float) -> Values:
    """Return the value of a thread that has used `cpu_s` of CPU time."""
    return {(THREAD_CPU_TIME.name, "java", pid, str(tid), "100"): round(cpu_s * TICKS_PER_S)}


def with_network(ticks: list[Snapshot], received_share: float, speed: int = 1000) -> list[Snapshot]:
    """Return the ticks with an interface of `speed` Mbit/s that receives this share of a Gbit/s; -1 is unknown."""
    result = []
    for number, snapshot in enumerate(ticks):
        scrape = snapshot.scrapes[0]
        values: Values = {
            (RECEIVED.name, "eth0"): round(number * received_share * 125e6),
            (SENT.name, "eth0"): number * 1000,
        }
        if speed >= 0:
            values[SPEED.name, "eth0"] = speed
        network = replace(scrape, source="network", values=values, origin="/proc/self/net")
        result.append(replace(snapshot, scrapes=(*snapshot.scrapes, network)))
    return result


def with_tables(ticks: list[Snapshot], reads_per_s: dict[str, int]) -> list[Snapshot]:
    """Return a node's ticks with this number of local reads per second on each table."""
    result = []
    for number, snapshot in enumerate(ticks):
        scrape = snapshot.scrapes[0]
        reads: Values = {
            (TABLE_READS.name, "ks", table, "Read"): number * per_s for table, per_s in reads_per_s.items()
        }
        scrapes = (replace(scrape, values={**scrape.values, **reads}), *snapshot.scrapes[1:])
        result.append(replace(snapshot, scrapes=scrapes))
    return result


def first(folder: Path, nodes: list[list[Snapshot]], client: list[Snapshot]) -> tuple[Resource, str] | None:
    """Return the resource that was saturated first, and where."""
    result = analysed(folder, nodes, client)
    return None if result.first is None else (result.first.resource, result.first.host)


def analysed(folder: Path, nodes: list[list[Snapshot]], client: list[Snapshot]) -> Saturation:
    """Return the result for a run whose nodes and client share a machine."""
    rows: tuple[Metric, ...] = (*METRICS, BY_CPU, PROCESS, ALLOWED_CPUS, CPU_TIME, CPUS, THREAD_CPU_TIME)
    rows += (RECEIVED, SENT, SPEED, TABLE_READS)
    for number, ticks in enumerate(nodes):
        process = f"{int(NODE_PID) + number}@vm 1"
        record(folder / "nodes" / ticks[0].node, ticks, metrics=rows, boot="b", process=process, interface="eth0")
    record(folder / "client-hosts" / "c1", client, metrics=rows, sources=(), boot="b", interface="eth0")
    names = [ticks[0].node for ticks in nodes]
    run = Run(
        "load",
        BEGIN_S,
        BEGIN_S + TICKS,
        "0.1.0",
        nodes=tuple(RunNode(name, f"http://{name}", f"nodes/{name}", TICKS, interval_s=1.0) for name in names),
        phases=(RunPhase("main", BEGIN_S, BEGIN_S + TICKS),),
        client_hosts=(ClientHost("c1", "", "client-hosts/c1", TICKS, interval_s=1.0),),
    )
    write_run(folder, run)
    result = completed(saturation_of(run_views(folder, run)))
    assert result is not None
    return result


@pytest.mark.parametrize(("allowed_cpus", "expected"), [("0", (CPU, "n1")), ("0-1", None), ("1", None)])
def test_only_the_processors_that_the_node_may_use_count(
    allowed_cpus: str, expected: tuple[Resource, str] | None, tmp_path: Path
) -> None:
    assert first(tmp_path, [node_ticks("n1", 0.97, 0.3, allowed_cpus)], client_ticks({}, 2)) == expected


@pytest.mark.parametrize(
    ("cpu_s_by_pid", "cpus", "expected"),
    [
        ({"7": 0.96}, 1, (GENERATOR, "client host c1")),
        ({"7": 0.96}, 2, None),
        ({"7": 1.96}, 2, (GENERATOR, "client host c1")),
        # The process of the node is not a load generator.
        ({NODE_PID: 0.96, "7": 0.3}, 1, None),
    ],
)
def test_the_processors_that_the_load_generator_may_use_count(
    cpu_s_by_pid: dict[str, float], cpus: int, expected: tuple[Resource, str] | None, tmp_path: Path
) -> None:
    assert first(tmp_path, [node_ticks("n1", 0.4, 0.3, "0")], client_ticks(cpu_s_by_pid, cpus)) == expected


def test_a_process_on_an_unknown_number_of_processors_is_not_assumed_to_be_idle(tmp_path: Path) -> None:
    client = without_cpu_numbers(client_ticks({"7": 0.96}, 1))
    result = analysed(tmp_path, [node_ticks("n1", 0.4, 0.3, "0")], client)
    assert result.first is None
    assert GENERATOR in result.unmeasured


@pytest.mark.parametrize(
    ("pid", "share", "expected"),
    [
        ("7", 0.96, (GENERATOR, "client host c1")),
        ("7", 0.8, None),
        # A thread of the node is not a load generator.
        (NODE_PID, 0.96, None),
    ],
)
def test_a_load_generator_with_one_busy_thread_is_limited_by_it(
    pid: str, share: float, expected: tuple[Resource, str] | None, tmp_path: Path
) -> None:
    client = with_values(client_ticks({pid: share + 0.1}, 8), lambda tick: thread(pid, 71, share * tick))
    assert first(tmp_path, [node_ticks("n1", 0.4, 0.3, "0")], client) == expected


def test_the_busiest_thread_may_change(tmp_path: Path) -> None:
    client = with_values(client_ticks({"7": 1.0}, 8), lambda tick: thread("7", 71 + tick // 20, 0.96 * (tick % 20)))
    result = analysed(tmp_path, [node_ticks("n1", 0.4, 0.3, "0")], client)
    assert result.first is not None
    assert result.first.text == "12% of its processors busy, 96% of one processor used by its busiest thread"


def test_a_busy_thread_limits_a_load_generator_on_an_unknown_number_of_processors(tmp_path: Path) -> None:
    client = with_values(without_cpu_numbers(client_ticks({"7": 0.96}, 1)), lambda tick: thread("7", 71, 0.95 * tick))
    assert first(tmp_path, [node_ticks("n1", 0.4, 0.3, "0")], client) == (GENERATOR, "client host c1")


def without_cpu_numbers(client: list[Snapshot]) -> list[Snapshot]:
    """Return the ticks as recorded by versions of casstat before CPUS."""
    return [
        replace(snapshot, scrapes=(replace(scrape, values=without_cpus(scrape.values)),))
        for snapshot in client
        for scrape in snapshot.scrapes
    ]


def without_cpus(values: Mapping[Series, Value]) -> Values:
    return {series: value for series, value in values.items() if series[0] != CPUS.name}


@pytest.mark.parametrize(("process_share", "expected"), [(0.8, (HOT_NODE, "n2")), (0.15, (CPU, "n1"))])
def test_a_node_with_most_of_the_cpu_time_is_named(
    process_share: float, expected: tuple[Resource, str], tmp_path: Path
) -> None:
    nodes = [node_ticks(name, 0.97, process_share if name == "n2" else 0.1, "0") for name in ("n1", "n2", "n3")]
    assert first(tmp_path, nodes, client_ticks({}, 2)) == expected


@pytest.mark.parametrize(
    ("node_share", "client_share", "speed", "expected"),
    [
        (0.95, 0.1, 1000, (NETWORK, "n1")),
        (0.1, 0.95, 1000, (NETWORK, "client host c1")),
        (0.95, 0.95, 10000, None),
        (0.95, 0.95, -1, None),
    ],
)
def test_the_network_of_the_node_or_client_host_is_named(
    node_share: float, client_share: float, speed: int, expected: tuple[Resource, str] | None, tmp_path: Path
) -> None:
    node = with_network(node_ticks("n1", 0.4, 0.3, "0"), node_share, speed)
    client = with_network(client_ticks({"7": 0.1}, 2), client_share, speed)
    result = analysed(tmp_path, [node], client)
    assert (None if result.first is None else (result.first.resource, result.first.host)) == expected
    assert (NETWORK in result.unmeasured) == (speed < 0)


@pytest.mark.parametrize(
    ("reads_per_s", "expected"),
    [({"users": 90, "events": 10}, HotTable("ks", "users", 0.9)), ({"users": 90, "events": 30}, None), ({}, None)],
)
def test_the_table_with_most_reads_is_a_detail_of_the_cpu(
    reads_per_s: dict[str, int], expected: HotTable | None, tmp_path: Path
) -> None:
    busy_node = with_tables(node_ticks("n1", 0.97, 0.3, "0"), reads_per_s)
    result = analysed(tmp_path, [busy_node, node_ticks("n2", 0.4, 0.3, "0")], client_ticks({}, 2))
    assert result.first is not None
    assert (result.first.resource, result.first.hot_table) == (CPU, expected)


def test_series_with_a_wrong_number_of_labels_are_ignored(tmp_path: Path) -> None:
    metrics = (BY_CPU, CPU_TIME, THREAD_CPU_TIME, TABLE_READS, SPEED, RECEIVED)
    series = [(metric.name, *labels) for metric in metrics for labels in ((), ("a",), ("a", "b", "c", "d", "e"))]

    def malformed(ticks: list[Snapshot]) -> list[Snapshot]:
        return with_values(ticks, lambda number: dict.fromkeys(series, number * 1_000_000))

    nodes, client = malformed(node_ticks("n1", 0.97, 0.3, "0")), malformed(client_ticks({"7": 0.5}, 2))
    assert first(tmp_path, [nodes], client) == (CPU, "n1")

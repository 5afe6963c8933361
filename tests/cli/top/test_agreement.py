"""`casstat merge`, `top --replay` and live `top` aggregate nodes in the same way."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isclose
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from cli.recordings.merge_program import recording_views
from cli.recordings.recording_arguments import MergeSettings
from cli.recordings.views import View
from cli.top.batch import json_text
from cli.top.recorded_frames import RecordedFrames
from collector.live.cluster_interval import NodeInfo
from collector.live.interval_assembler import IntervalAssembler
from collector.merge import aggregation
from collector.merge.columnar import cluster_sums
from collector.merge.grid import Grid
from collector.merge.merge_job import Job, Merged, NodeRun
from collector.merge.recordings import recordings, sessions
from collector.model.metric import Aggregation, Kind, Series, Value, Values
from collector.model.snapshot import Placement, Scrape, Snapshot, Tick, with_rounded_times
from collector.node.catalogue import CATALOGUE
from exporters.live.frame import Wanted, frame_of
from exporters.live.live_columns import COLUMN_INDEX, EVERY, SUMMED
from exporters.rows.merged_rows import table_of
from exporters.rows.operation_columns import Operations
from tests.collector.merge.recorded_nodes import BEGIN_S, record
from tests.collector.merge.reference_merge import reference_merge
from tests.examples import thorough

pytestmark = thorough

TICKS = 11
COLLECTORS = ("G1 Young Generation", "ZGC Pauses", "ZGC Cycles")
CPU = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
OPERATIONS = tuple(
    (f"cassandra_client_request{suffix}_total", operation)
    for operation in ("Read", "Write")
    for suffix in ("s", "_seconds", "_unavailables")
)
SERIES: tuple[Series, ...] = (
    *OPERATIONS,
    ("cassandra_jvm_heap_max_bytes",),
    ("cassandra_endpoints_unreachable",),
    ("cassandra_cache_hits_total", "KeyCache"),
    ("cassandra_cache_requests_total", "KeyCache"),
    *((metric.name, *column.labels) for metric in CATALOGUE.values() for column in metric.columns),
)
Row = Mapping[str, float | None]


@dataclass(frozen=True)
class Node:
    """A generated node: its machine, and the ticks at which it is down, restarts or lacks a gauge."""

    name: str
    machine: str
    network: str
    disk: str
    collector: str
    down: frozenset[int]
    restarts: frozenset[int]
    lacking: frozenset[int]
    seed: int


@st.composite
def clusters(draw: st.DrawFn) -> list[Node]:
    def some(most: int = 3) -> frozenset[int]:
        return frozenset(draw(st.lists(st.integers(1, TICKS - 2), max_size=most)))

    return [
        Node(
            f"n{number}",
            draw(st.sampled_from(["", "m1", "m1", "m2"])),
            draw(st.sampled_from(["net1", "net2"])),
            draw(st.sampled_from(["vda", "vdb"])),
            draw(st.sampled_from(COLLECTORS)),
            some(6),
            some(1),
            some(),
            draw(st.integers(0, 1000)),
        )
        for number in range(draw(st.integers(2, 4)))
    ]


def snapshots(node: Node) -> Iterator[Snapshot]:
    """Yield the node's snapshot for each tick. Nodes on one machine and network report the same machine metrics."""
    chance, counts, starts = Random(node.seed), dict[Series, int](), 0  # noqa: S311
    for tick in range(TICKS):
        if tick in node.restarts:
            counts, starts = {}, starts + 1
        values: Values = {}
        for series in (*SERIES, ("cassandra_jvm_gc_seconds_total", node.collector)):
            metric = CATALOGUE[series[0]]
            if series[0].startswith(("cassandra_", "casstat_process")):
                values[series] = _value(metric.kind, series, counts, chance)
        # Do not remove the gauge immediately after an outage or a restart, when there is no previous value.
        if tick in node.lacking and tick - 1 not in node.down and tick not in node.restarts:
            del values["cassandra_compaction_pending",]
        scrapes = [Scrape("cassandra", 50.0 + tick, values, str(starts))] if tick not in node.down else []
        scrapes.append(Scrape("host", 50.0 + tick, dict(_machine(node, tick)), "boot"))
        yield with_rounded_times(Snapshot(node.name, Tick(BEGIN_S + tick), tuple(scrapes)))


def _value(kind: Kind, series: Series, counts: dict[Series, int], chance: Random) -> int:
    number = chance.randrange(1, 50_000)
    if kind is Kind.COUNTER:
        counts[series] = counts.get(series, 0) + number
        return counts[series]
    return number


def _machine(node: Node, tick: int) -> Iterator[tuple[Series, Value]]:
    machine = node.machine or node.name
    devices = {"node_disk": node.disk, "node_network": "eth0"}
    for name, metric in CATALOGUE.items():
        if name.startswith(("node_disk", "node_network", "node_memory", "node_pressure", "node_netstat")):
            device = devices.get("_".join(name.split("_")[:2]), "")
            network = node.network if "net" in name.split("_")[1] else ""
            chance = Random(f"{machine} {network} {name} {device}")  # noqa: S311
            step = chance.randrange(1, 10_000)
            value = step * (tick + 1) if metric.kind is Kind.COUNTER else step + tick % 3
            yield (name, device) if metric.labels else (name,), value
    for number, mode in enumerate(CPU, len(machine)):
        yield ("casstat_cpu_seconds_total", mode), number * (tick + 1)


def recorded(nodes: Sequence[Node], folder: Path) -> Path:
    for node in nodes:
        head: dict[str, Any] = {"boot": node.machine, "network": node.network, "disk": node.disk, "interface": "eth0"}
        metrics = tuple(CATALOGUE.values())
        record(folder / node.name, snapshots(node), metrics=metrics, process=node.name, **head)
    return folder


def merge_rows(folder: Path, interval_s: float) -> dict[float, Row]:
    """Return the cluster rows that `casstat merge` would write, by time."""
    views = recording_views(MergeSettings((folder,), interval_s))
    run, operations = View(views, lambda _, node: node.node).merged()
    return rows_of(run, operations)


def plain_merge(folder: Path, interval_s: float) -> Merged[NodeRun]:
    runs, _ = recordings(sessions([folder])[0])
    return reference_merge(runs, Job(Grid(interval_s), {}, frozenset(CATALOGUE), lambda run: run))


def rows_of(run: Merged[Any], operations: Operations) -> dict[float, Row]:
    rows: dict[float, Row] = {}
    for interval in run.cluster.values():
        row: dict[str, Any] = table_of(operations).cluster_row(interval, len(run.nodes))
        rows[interval.sample.tick.time_s] = {name: row[name] for name in COLUMN_INDEX.keys() & row.keys()}
    return rows


def top_rows(folder: Path, interval_s: float) -> dict[float, Row]:
    """Return the cluster rows that `casstat top --replay --format json` would print, by time."""
    frames = RecordedFrames(MergeSettings((folder,), interval_s)).history.frames
    return {frame.time_s: json.loads(json_text(frame, (None, None), EVERY))["cluster"] for frame in frames}


def live_rows(run: Merged[NodeRun], nodes: Sequence[Node]) -> dict[float, Row]:
    """Return the cluster rows that live `casstat top` would show for the nodes' samples, by time."""
    assembler = IntervalAssembler(run.grid.interval_s, SUMMED)
    for node in nodes:
        assembler.add_node(node.name, node.name)
        placement = Placement(node.machine, node.network, node.disk, "eth0")
        info = NodeInfo(interval_s=run.grid.interval_s, placement=placement)
        assembler.set_info(node.name, info)
    rows = {}
    for index in run.indices:
        end_s = run.grid.end_of(index)
        for result in run.nodes:
            if index in result.product.intervals:
                assembler.add_sample(result.node, result.product.intervals[index].sample, end_s + 0.1)
        frame = frame_of(assembler.close(index, end_s + 0.5), Wanted(EVERY))
        rows[end_s] = json.loads(json_text(frame, (None, None), EVERY))["cluster"]
    return rows


def differences(left: Mapping[float, Row], right: Mapping[float, Row]) -> list[tuple[float, str]]:
    """Return the time and column of each differing cell; only columns present on both sides are compared."""

    def same(a: float | None, b: float | None) -> bool:
        if a is None or b is None:
            return a is b
        return isclose(a, b, rel_tol=1e-6, abs_tol=1e-3)

    assert left.keys() == right.keys()
    return [
        (time_s, name)
        for time_s, row in left.items()
        for name in row.keys() & right[time_s].keys()
        if not same(row[name], right[time_s][name])
    ]


QUICK = settings(max_examples=6, deadline=None, phases=[Phase.reuse, Phase.generate])


@given(clusters(), st.sampled_from([1.0, 5.0]))
@QUICK
def test_merge_replay_and_live_show_the_same_cluster(nodes: list[Node], interval_s: float) -> None:
    with TemporaryDirectory() as folder:
        recording = recorded(nodes, Path(folder))
        merge = merge_rows(recording, interval_s)
        assert all(len(row) > 50 for row in merge.values())
        assert differences(merge, top_rows(recording, interval_s)) == []
        plain = plain_merge(recording, interval_s)
        assert differences(merge, rows_of(plain, Operations())) == []
        # The live cluster does not know for how long a node that answered in an interval did not.
        partly = {
            plain.grid.end_of(index)
            for node in plain.nodes
            for index, interval in node.product.intervals.items()
            if interval.unknown_s
        }
        live = live_rows(plain, nodes)
        assert differences(*({time_s: rows[time_s] for time_s in rows.keys() - partly} for rows in (merge, live))) == []


TWO = [Node(f"n{n}", "m1", "net1", "vda", COLLECTORS[n], frozenset(), frozenset(), frozenset(), n) for n in (0, 1)]


def test_pending_compactions_and_heap_are_summed_and_shares_are_averaged(tmp_path: Path) -> None:
    recording = recorded(TWO, tmp_path)
    merge = plain_merge(recording, 5.0)
    (row, *_), (index, *_) = merge_rows(recording, 5.0).values(), merge.cluster
    samples = [node.product.intervals[index].sample for node in merge.nodes]
    rows = [table_of(Operations()).row(sample.node, sample, 1, 0, ("", "")) for sample in samples]

    def of_nodes(name: str) -> list[float]:
        return [value for node_row in rows if isinstance(value := node_row[name], int | float)]

    for name in ("compactions_pending", "heap_used_mb", "native_connections", "hints_per_s", "read_stage_pending"):
        assert row[name] == pytest.approx(sum(of_nodes(name)), abs=1e-3)
    for name in ("gc_pct", "jvm_cpu_pct", "disk_util_pct", "pressure_io_pct"):
        assert row[name] == pytest.approx(sum(of_nodes(name)) / 2, abs=1e-3)
    for name in ("disk_reads_per_s", "net_rx_kbit_per_s", "memory_available_mb"):
        assert row[name] == of_nodes(name)[0] == of_nodes(name)[1]


@pytest.mark.parametrize("implementation", ["reference", "columnar", "machine"])
def test_a_change_to_one_implementation_is_detected(
    implementation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes: dict[str, Callable[[], None]] = {
        "reference": lambda: monkeypatch.setitem(aggregation._GAUGES, Aggregation.SUM, max),
        "columnar": lambda: monkeypatch.setitem(
            cluster_sums._GAUGES, Aggregation.SUM, cluster_sums._GAUGES[Aggregation.MAX]
        ),
        "machine": lambda: monkeypatch.setattr(cluster_sums, "placement_of", lambda _: Placement()),
    }
    recording = recorded(TWO, tmp_path)
    plain = plain_merge(recording, 5.0)
    assert differences(merge_rows(recording, 5.0), live_rows(plain, TWO)) == []
    changes[implementation]()
    assert differences(merge_rows(recording, 5.0), live_rows(plain, TWO)) != []

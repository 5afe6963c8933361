"""One aggregation across nodes: the merge, `top --replay` and `top` live show the same cluster."""

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

from cli.recordings.merge_program import MergeSettings, merged
from cli.top.batch import json_text
from cli.top.recorded_frames import RecordedFrames
from collector.catalogue import CATALOGUE
from collector.cluster import aggregation
from collector.cluster.columnar import cluster_sums
from collector.cluster.grid import Grid
from collector.cluster.live.cluster_interval import NodeInfo
from collector.cluster.live.interval_assembler import IntervalAssembler
from collector.cluster.merge_job import Job, Merged, NodeRun
from collector.cluster.recordings import recordings, sessions
from collector.cluster.reference_merge import reference_merge
from collector.model.metric import Aggregation, Kind, Series, Value, Values
from collector.model.snapshot import Scrape, Snapshot, Tick, with_rounded_times
from exporters.files.merged_rows import Choice, table_of
from exporters.live.live_columns import COLUMN_INDEX, EVERY, SUMMED
from exporters.live.live_frames import Wanted, frame_of
from tests.collector.cluster.recorded_nodes import BEGIN_S, record

TICKS = 11
COLLECTORS = ("G1 Young Generation", "ZGC Pauses")
CPU = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
OPERATIONS = tuple(
    (f"cassandra_client_request{what}_total", operation)
    for operation in ("Read", "Write")
    for what in ("s", "_seconds", "_unavailables")
)
MORE: tuple[Series, ...] = (
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
    """A made-up node: where it runs, when it is away, when it starts again, and which gauge it leaves out when."""

    name: str
    machine: str
    network: str
    disk: str
    collector: str
    away: frozenset[int]
    restarts: frozenset[int]
    silent: frozenset[int]
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
    """Yield the ticks of a node; machines and networks have numbers of their own, the same for all their nodes."""
    chance, counts, starts = Random(node.seed), dict[Series, int](), 0  # noqa: S311
    for tick in range(TICKS):
        if tick in node.restarts:
            counts, starts = {}, starts + 1
        own: Values = {}
        for series in (*MORE, ("cassandra_jvm_gc_seconds_total", node.collector)):
            metric = CATALOGUE[series[0]]
            if series[0].startswith(("cassandra_", "casstat_process")):
                own[series] = _value(metric.kind, series, counts, chance)
        # Of a node that has just come back nothing is known before.
        if tick in node.silent and tick - 1 not in node.away and tick not in node.restarts:
            del own["cassandra_compaction_pending",]
        scrapes = [Scrape("cassandra", 50.0 + tick, own, str(starts))] if tick not in node.away else []
        scrapes.append(Scrape("host", 50.0 + tick, dict(_machine(node, tick)), "boot"))
        yield with_rounded_times(Snapshot(node.name, Tick(BEGIN_S + tick), tuple(scrapes)))


def _value(kind: Kind, series: Series, counts: dict[Series, int], chance: Random) -> int:
    number = chance.randrange(1, 50_000)
    if kind is Kind.COUNTER:
        counts[series] = counts.get(series, 0) + number
        return counts[series]
    return number


def _machine(node: Node, tick: int) -> Iterator[tuple[Series, Value]]:
    place = node.machine or node.name
    devices = {"node_disk": node.disk, "node_network": "eth0"}
    for name, metric in CATALOGUE.items():
        if name.startswith(("node_disk", "node_network", "node_memory", "node_pressure", "node_netstat")):
            device = devices.get("_".join(name.split("_")[:2]), "")
            network = node.network if "net" in name.split("_")[1] else ""
            chance = Random(f"{place} {network} {name} {device}")  # noqa: S311
            step = chance.randrange(1, 10_000)
            value = step * (tick + 1) if metric.kind is Kind.COUNTER else step + tick % 3
            yield (name, device) if metric.labels else (name,), value
    for number, mode in enumerate(CPU, len(place)):
        yield ("casstat_cpu_seconds_total", mode), number * (tick + 1)


def recorded(nodes: Sequence[Node], folder: Path) -> Path:
    for node in nodes:
        head: dict[str, Any] = {"boot": node.machine, "network": node.network, "disk": node.disk, "interface": "eth0"}
        metrics = tuple(CATALOGUE.values())
        record(folder / node.name, snapshots(node), metrics=metrics, process=node.name, **head)
    return folder


def of_merge(folder: Path, interval_s: float) -> dict[float, Row]:
    """Return the cluster's rows of `casstat merge`, by their time."""
    run, choice = merged(MergeSettings((folder,), interval_s), lambda _, node: node.node)
    return rows_of(run, choice)


def plain_merge(folder: Path, interval_s: float) -> Merged[NodeRun]:
    found, _ = recordings(sessions([folder])[0])
    return reference_merge(found, Job(Grid(interval_s), {}, frozenset(CATALOGUE), lambda run: run))


def rows_of(run: Merged[Any], choice: Choice) -> dict[float, Row]:
    rows: dict[float, Row] = {}
    for together in run.cluster.values():
        row: dict[str, Any] = table_of(choice).cluster_row(together, len(run.nodes))
        rows[together.sample.tick.time_s] = {name: row[name] for name in COLUMN_INDEX.keys() & row.keys()}
    return rows


def of_top(folder: Path, interval_s: float) -> dict[float, Row]:
    """Return the cluster's rows of `casstat top --replay --format json`."""
    frames = RecordedFrames(MergeSettings((folder,), interval_s)).history.frames
    return {frame.time_s: json.loads(json_text(frame, (None, None), EVERY))["cluster"] for frame in frames}


def of_live(run: Merged[NodeRun], nodes: Sequence[Node]) -> dict[float, Row]:
    """Return the cluster's rows of `casstat top` whose agents send the nodes' samples."""
    assembler = IntervalAssembler(run.grid.interval_s, SUMMED)
    for node in nodes:
        assembler.add_node(node.name, node.name)
        info = NodeInfo("", "", False, run.grid.interval_s, node.machine, node.network, node.disk, "eth0")
        assembler.set_info(node.name, info)
    rows = {}
    for place in run.indices:
        end_s = run.grid.end_of(place)
        for result in run.nodes:
            if place in result.product.intervals:
                assembler.add_sample(result.node, result.product.intervals[place].sample, end_s + 0.1)
        frame = frame_of(assembler.close(place, end_s + 0.5), Wanted(EVERY))
        rows[end_s] = json.loads(json_text(frame, (None, None), EVERY))["cluster"]
    return rows


def differences(one: Mapping[float, Row], other: Mapping[float, Row]) -> list[tuple[float, str]]:
    """Return the times and columns in which the rows differ, of those that both have."""

    def same(mine: float | None, others: float | None) -> bool:
        if mine is None or others is None:
            return mine is others
        return isclose(mine, others, rel_tol=1e-6, abs_tol=1e-3)

    assert one.keys() == other.keys()
    return [
        (time_s, name)
        for time_s, row in one.items()
        for name in row.keys() & other[time_s].keys()
        if not same(row[name], other[time_s][name])
    ]


QUICK = settings(max_examples=6, deadline=None, phases=[Phase.reuse, Phase.generate])


@given(clusters(), st.sampled_from([1.0, 5.0]))
@QUICK
def test_the_cluster_is_the_same_wherever_it_is_shown(nodes: list[Node], interval_s: float) -> None:
    with TemporaryDirectory() as folder:
        recording = recorded(nodes, Path(folder))
        merge = of_merge(recording, interval_s)
        assert all(len(row) > 50 for row in merge.values())
        assert differences(merge, of_top(recording, interval_s)) == []
        plain = plain_merge(recording, interval_s)
        assert differences(merge, rows_of(plain, Choice())) == []
        assert differences(merge, of_live(plain, nodes)) == []


TWO = [Node(f"n{n}", "m1", "net1", "vda", COLLECTORS[n], frozenset(), frozenset(), frozenset(), n) for n in (0, 1)]


def test_pending_compactions_and_heap_are_sums_and_shares_are_means(tmp_path: Path) -> None:
    recording = recorded(TWO, tmp_path)
    merge = plain_merge(recording, 5.0)
    (row, *_), (together, *_) = of_merge(recording, 5.0).values(), merge.cluster
    samples = [node.product.intervals[together].sample for node in merge.nodes]
    rows = [table_of(Choice()).row(sample.node, sample, 1, 0, ("", "")) for sample in samples]

    def of_nodes(name: str) -> list[float]:
        return [value for each in rows if isinstance(value := each[name], int | float)]

    for name in ("compactions_pending", "heap_used_mb", "native_connections", "hints_per_s", "read_stage_pending"):
        assert row[name] == pytest.approx(sum(of_nodes(name)), abs=1e-3)
    for name in ("gc_pct", "jvm_cpu_pct", "disk_util_pct", "pressure_io_pct"):
        assert row[name] == pytest.approx(sum(of_nodes(name)) / 2, abs=1e-3)
    for name in ("disk_reads_per_s", "net_rx_kbit_per_s", "memory_available_mb"):
        assert row[name] == of_nodes(name)[0] == of_nodes(name)[1]


@pytest.mark.parametrize("place", ["reference", "columnar", "machine"])
def test_a_rule_that_is_changed_in_one_place_is_noticed(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes: dict[str, Callable[[], None]] = {
        "reference": lambda: monkeypatch.setitem(aggregation._GAUGES, Aggregation.SUM, max),
        "columnar": lambda: monkeypatch.setitem(
            cluster_sums._GAUGES, Aggregation.SUM, cluster_sums._GAUGES[Aggregation.MAX]
        ),
        "machine": lambda: monkeypatch.setattr(cluster_sums, "placement", lambda _: aggregation.Placement()),
    }
    recording = recorded(TWO, tmp_path)
    plain = plain_merge(recording, 5.0)
    assert differences(of_merge(recording, 5.0), of_live(plain, TWO)) == []
    changes[place]()
    assert differences(of_merge(recording, 5.0), of_live(plain, TWO)) != []

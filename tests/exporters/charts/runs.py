"""Generates synthetic runs to plot."""

import math
import random
from bisect import bisect_left
from collections.abc import Sequence

from collector.model.histogram import Buckets, highest, merge, quantile, upper_bounds_of
from exporters.charts.plot_data import CLUSTER, Mark, Phase, PlotData, Row

BEGIN_S = 1_795_255_200.0
SUMS = (
    *("reads_per_s", "writes_per_s", "disk_read_mb_per_s", "disk_write_mb_per_s"),
    *("net_rx_kbit_per_s", "net_tx_kbit_per_s", "compactions_pending"),
)
MEANS = ("gc_pct", *(f"cpu_{part}_pct" for part in ("user", "nice", "system", "idle", "iowait", "steal")))
UPPER_BOUNDS = upper_bounds_of("seconds", 128)


def durations(chance: random.Random, count: int, median_s: float) -> Buckets:
    """Return a histogram of `count` random durations around a median, with a long tail."""
    counts = [0] * len(UPPER_BOUNDS)
    for _ in range(count):
        value = median_s * math.exp(chance.gauss(0, 0.5)) * (1 + 30 * (chance.random() < 0.006) * chance.random())
        counts[bisect_left(UPPER_BOUNDS, value)] += 1
    return Buckets(UPPER_BOUNDS, tuple(counts))


def _percentiles(word: str, buckets: Buckets | None) -> dict[str, float | None]:
    def ms(value: float | None) -> float | None:
        return None if value is None else 1000 * value

    cells = {f"{word}_p{q}_ms": ms(quantile(buckets, q / 100)) if buckets else None for q in (50, 95, 99)}
    return {**cells, f"{word}_max_ms": ms(highest(buckets)) if buckets else None}


def synthetic(
    nodes: Sequence[str] = ("node-1", "node-2", "node-3"),
    seconds: int = 600,
    *,
    missing: range = range(200, 400),
    seed: int = 1,
    values: int = 60,
) -> PlotData:
    """Return a run with a warm-up and events; its second node has no rows for the seconds in `missing`."""
    chance = random.Random(seed)  # noqa: S311
    times = [BEGIN_S + 1 + index for index in range(seconds)]
    rows: dict[str, list[Row | None]] = {name: [] for name in (CLUSTER, *nodes)}
    buckets: dict[str, list[Buckets | None]] = {"read": [], "write": []}
    for second in range(seconds):
        at: dict[str, dict[str, Buckets]] = {}
        for index, node in enumerate(nodes):
            if index == 1 and second in missing:
                rows[node].append(None)
                continue
            load = (0.3 if second < 60 else 1) * (1 + 0.1 * math.sin(second / 50 + index)) * (1 + 0.05 * index)
            slow = (3.0 if second < 60 else 1.0) * (1 + 2 * (second % 170 < 8))
            reads, writes = 900 * load * chance.uniform(0.92, 1.08), 600 * load * chance.uniform(0.9, 1.1)
            at[node] = {
                "read": durations(chance, values, 0.0006 * slow),
                "write": durations(chance, values // 2, 0.0003 * slow),
            }
            user, system = 35 * load * chance.uniform(0.8, 1.2), 9 * load * chance.uniform(0.8, 1.2)
            iowait, steal, nice = chance.uniform(0, 6), chance.uniform(0, 1), 2.0
            rows[node].append(
                {
                    "interval_s": 1.0,
                    "reads_per_s": reads,
                    "writes_per_s": writes,
                    **_percentiles("read", at[node]["read"]),
                    **_percentiles("write", at[node]["write"]),
                    "gc_pct": chance.uniform(5, 11) if second % 30 == 0 else chance.uniform(0, 1),
                    "compactions_pending": float(max(0, round(4 + 4 * math.sin(second / 40 + index)))),
                    "cpu_user_pct": user,
                    "cpu_nice_pct": nice,
                    "cpu_system_pct": system,
                    "cpu_iowait_pct": iowait,
                    "cpu_steal_pct": steal,
                    "cpu_idle_pct": 100 - user - system - iowait - steal - nice,
                    "disk_read_mb_per_s": chance.uniform(0, 5),
                    "disk_write_mb_per_s": 12 * load * chance.uniform(0.5, 1.5),
                    "net_rx_kbit_per_s": 9000 * load * chance.uniform(0.9, 1.1),
                    "net_tx_kbit_per_s": 14000 * load * chance.uniform(0.9, 1.1),
                }
            )
        parts = [row for name in nodes if (row := rows[name][-1]) is not None]
        cluster: dict[str, float | str | None] = {
            "nodes": float(len(parts)),
            "nodes_missing": len(nodes) - len(parts),
            "interval_s": 1.0,
        }
        cluster["operations_per_s"] = sum(
            float(row["reads_per_s"] or 0) + float(row["writes_per_s"] or 0) for row in parts
        )
        for word in ("read", "write"):
            merged = merge([node_buckets[word] for node_buckets in at.values()]) if at else None
            buckets[word].append(merged)
            cluster.update(_percentiles(word, merged))
        cluster.update({name: sum(float(row[name] or 0) for row in parts) for name in SUMS})
        cluster.update({name: sum(float(row[name] or 0) for row in parts) / len(parts) for name in MEANS if parts})
        rows[CLUSTER].append(cluster if parts else None)
    return PlotData(
        "mixed load, 5.0.8, RF 3", 1.0, times, rows, buckets, _marks(nodes, seconds), _phases(seconds), 3600, _footer()
    )


def _marks(nodes: Sequence[str], seconds: int) -> list[Mark]:
    marks = [Mark(BEGIN_S + second + 0.4, nodes[0], "gc", "GC in 212 ms") for second in range(10, seconds, 45)]
    marks += [Mark(BEGIN_S + 300 + step, nodes[-1], "flush", "flushed ks.t, 12 MiB") for step in range(5)]
    marks.append(Mark(BEGIN_S + seconds // 3, nodes[min(1, len(nodes) - 1)], "down", "is now DOWN"))
    marks.append(Mark(BEGIN_S + 2 * seconds // 3, nodes[min(1, len(nodes) - 1)], "up", "is now UP"))
    marks.append(Mark(BEGIN_S + seconds * 0.8, "", "schema", "schema changed"))
    return marks


def _phases(seconds: int) -> list[Phase]:
    return [
        Phase(BEGIN_S, BEGIN_S + 60, "warm-up", warm_up=True),
        Phase(BEGIN_S + 60, BEGIN_S + 360, "steady"),
        Phase(BEGIN_S + 360, BEGIN_S + seconds, "with repair"),
    ]


def _footer() -> list[str]:
    return [
        "Cassandra 5.0.8 on 3 nodes",
        "interval 1 s",
        "samples lost: 200 of 1800 (node-2)",
        "largest clock error ±1.2 ms",
        "casstat 0.1.0",
        "cassandra-stress mixed ratio(write=2,read=3) n=1000000 cl=QUORUM -rate threads=64 throttle=1500/s",
    ]

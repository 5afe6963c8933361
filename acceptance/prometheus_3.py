"""Run the tests of remote write and of the dashboards' queries with Prometheus 3, and compare its native histograms.

Debian has Prometheus 2, which knows neither remote write 2.0 nor native histograms with custom buckets. Builds
Prometheus from its Go module, which takes ten minutes the first time. The quantiles of native histograms must be within
a bucket of those of classic ones and, for nodes of Cassandra 4.0 and 5.0 together, of those of the durations
themselves. In the test of an outage, it lasts two minutes.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import exp, log
from pathlib import Path
from statistics import NormalDist
from tempfile import TemporaryDirectory

from cli.setup.demo.demo_cluster import cache_folder
from collector.model.histogram import GROWTH, upper_bounds_of
from collector.model.metric import Series, Value
from exporters.sinks.parts.all_sinks import sink_of
from tests.exporters.sinks.page_ticks import BEGIN_S, node_tick
from tests.real.prometheus import Prometheus

MODULE = "github.com/prometheus/prometheus@v0.308.0"
TESTS = ("tests/real/test_remote_write.py", "tests/real/test_queries.py", "tests/real/test_rules.py")
NODES, PUSHED_S, RANGE = 3, 90, "60s"
QUANTILES = (0.5, 0.95, 0.99)
# The number of buckets in Cassandra 4.0 and 5.0, and the median of the durations of a node of that version.
MEDIANS_S = {165: 0.002, 128: 0.0008}
DURATIONS, SPREAD, TICKS = 20_000, 1.0, 60
# Before and after the agent is killed.
OUTAGE_TICKS = 60
HISTOGRAM = "cassandra_client_request_duration_seconds"


def built() -> Path:
    """Return the directory of the program; build it if it does not exist."""
    folder = cache_folder(os.environ) / "prometheus-3"
    if not (folder / "prometheus").exists():
        downloaded = subprocess.run(["go", "mod", "download", "-json", MODULE], check=True, capture_output=True)  # noqa: S607
        with TemporaryDirectory() as name:
            source = Path(name, "source")
            shutil.copytree(json.loads(downloaded.stdout)["Dir"], source)
            for path in [source, *source.rglob("*")]:
                path.chmod(path.stat().st_mode | 0o200)
            folder.mkdir(parents=True, exist_ok=True)
            command = ["go", "build", "-o", str(folder / "prometheus"), "./cmd/prometheus"]
            subprocess.run(["nice", *command], cwd=source, check=True)  # noqa: S607
    return folder


@contextmanager
def running(folder: Path) -> Iterator[Prometheus]:
    """Run a Prometheus."""
    store = Prometheus(folder)
    store.start()
    try:
        yield store
    finally:
        store.stop()


@contextmanager
def filled(folder: Path) -> Iterator[Prometheus]:
    """Run a Prometheus that has received classic and native histograms of simulated nodes."""
    with running(folder) as store:
        words = ["simulate", "--nodes", str(NODES), "--duration", str(PUSHED_S)]
        url = f"{store.write_url}?native_histograms=1"
        subprocess.run([sys.executable, "-m", "cli", *words, "--to", url], check=True)
        yield store


def counts_of(durations_s: Sequence[float], length: int) -> tuple[int, ...]:
    """Return the counts of a histogram of Cassandra with `length` buckets."""
    bounds = upper_bounds_of("seconds", length)
    counts = [0] * length
    for duration_s in durations_s:
        counts[bisect_left(bounds, duration_s)] += 1
    return tuple(counts)


def wrong_for_mixed_versions(store: Prometheus) -> Iterator[str]:
    """Push histograms of two versions, and yield the quantiles of their sum that are more than a bucket off."""
    all_durations_s = []
    for length, median_s in MEDIANS_S.items():
        normal = NormalDist(log(median_s), SPREAD)
        durations_s = [exp(normal.inv_cdf((number + 0.5) / DURATIONS)) for number in range(DURATIONS)]
        all_durations_s += durations_s
        counts = counts_of(durations_s, length)
        sink = sink_of(f"{store.write_url}?native_histograms=1&labels=instance:{length}")
        for number in range(TICKS):
            values: dict[Series, Value] = {(HISTOGRAM, "Read"): tuple(number * count for count in counts)}
            sink.send(sink.encode(node_tick(number, values)), 10.0)
        sink.close()
    all_durations_s.sort()
    for quantile in QUANTILES:
        query = f"histogram_quantile({quantile}, sum(rate({HISTOGRAM}[{TICKS}s])))"
        stored_s, true_s = (
            store.value(query, BEGIN_S + TICKS - 1),
            all_durations_s[int(quantile * len(all_durations_s))],
        )
        print(f"4.0 and 5.0, {quantile}: {1000 * stored_s:.3f} ms, true {1000 * true_s:.3f} ms")
        if not 1 / GROWTH <= stored_s / true_s <= GROWTH:
            yield f"4.0 and 5.0, {quantile}"


def wrong_quantiles(store: Prometheus) -> Iterator[str]:
    """Print the quantiles of both kinds of histograms, and yield those that are more than a bucket apart."""
    now_s = time.time()
    for operation in ("Read", "Write"):
        selector = f'operation="{operation}"'
        for quantile in QUANTILES:
            native, classic = (
                store.value(f"histogram_quantile({quantile}, {total})", now_s)
                for total in (
                    f"sum(rate({HISTOGRAM}{{{selector}}}[{RANGE}]))",
                    f"sum by (le) (rate({HISTOGRAM}_bucket{{{selector}}}[{RANGE}]))",
                )
            )
            print(f"{operation} {quantile}: native {1000 * native:.3f} ms, classic {1000 * classic:.3f} ms")
            if not 1 / GROWTH <= native / classic <= GROWTH:
                yield f"{operation} {quantile}"


def main() -> int:
    """Run the tests and the comparison; return 1 if something is wrong."""
    os.environ["PATH"] = f"{built()}:{os.environ['PATH']}"
    subprocess.run(["prometheus", "--version"], check=True)  # noqa: S607
    with TemporaryDirectory() as name:
        with filled(Path(name, "simulated")) as store:
            wrong = list(wrong_quantiles(store))
        with running(Path(name, "mixed")) as store:
            wrong += wrong_for_mixed_versions(store)
    print(f"quantiles that are more than a bucket apart: {', '.join(wrong) or 'none'}", flush=True)
    environ = {**os.environ, "CASSTAT_OUTAGE_TICKS": str(OUTAGE_TICKS)}
    tests = subprocess.run([sys.executable, "-m", "pytest", "-q", *TESTS], check=False, env=environ)
    return int(bool(wrong) or tests.returncode != 0)


if __name__ == "__main__":
    sys.exit(main())

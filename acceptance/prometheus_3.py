"""Run the tests of remote write and of the dashboards' queries with Prometheus 3, and compare its native histograms.

Debian has Prometheus 2, which knows neither remote write 2.0 nor native histograms with custom buckets. Builds
Prometheus from its Go module, which takes ten minutes the first time. The quantiles of native histograms must be within
a bucket of those of classic ones.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from cli.demo.demo_cluster import cache_folder
from tests.real.prometheus import Prometheus

MODULE = "github.com/prometheus/prometheus@v0.308.0"
TESTS = ("tests/real/test_remote_write.py", "tests/real/test_queries.py", "tests/real/test_rules.py")
NODES, PUSHED_S, RANGE = 3, 90, "60s"
# The ratio of the bounds of a bucket.
BUCKET = 1.2
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
def filled(folder: Path) -> Iterator[Prometheus]:
    """Run a Prometheus that has received classic and native histograms of simulated nodes."""
    store = Prometheus(folder / "prometheus")
    store.start()
    try:
        words = ["simulate", "--nodes", str(NODES), "--duration", str(PUSHED_S)]
        url = f"{store.write_url}?native_histograms=1"
        subprocess.run([sys.executable, "-m", "cli", *words, "--to", url], check=True)
        yield store
    finally:
        store.stop()


def wrong_quantiles(store: Prometheus) -> Iterator[str]:
    """Print the quantiles of both kinds of histograms, and yield those that are more than a bucket apart."""
    now_s = time.time()
    for operation in ("Read", "Write"):
        selector = f'operation="{operation}"'
        for quantile in (0.5, 0.95, 0.99):
            native, classic = (
                store.value(f"histogram_quantile({quantile}, {total})", now_s)
                for total in (
                    f"sum(rate({HISTOGRAM}{{{selector}}}[{RANGE}]))",
                    f"sum by (le) (rate({HISTOGRAM}_bucket{{{selector}}}[{RANGE}]))",
                )
            )
            print(f"{operation} {quantile}: native {1000 * native:.3f} ms, classic {1000 * classic:.3f} ms")
            if not 1 / BUCKET <= native / classic <= BUCKET:
                yield f"{operation} {quantile}"


def main() -> int:
    """Run the tests and the comparison; return 1 if something is wrong."""
    os.environ["PATH"] = f"{built()}:{os.environ['PATH']}"
    subprocess.run(["prometheus", "--version"], check=True)  # noqa: S607
    with TemporaryDirectory() as name, filled(Path(name)) as store:
        wrong = list(wrong_quantiles(store))
    print(f"quantiles that are more than a bucket apart: {', '.join(wrong) or 'none'}", flush=True)
    tests = subprocess.run([sys.executable, "-m", "pytest", "-q", *TESTS], check=False)
    return int(bool(wrong) or tests.returncode != 0)


if __name__ == "__main__":
    sys.exit(main())

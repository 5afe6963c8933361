"""The HTTP load generator Vegeta: its installation, its commands, and its results as the generic CSV.

Vegeta starts requests at a fixed rate, however long they take. Its latencies are service times.
"""

import csv
import io
import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cli.setup.demo.demo_cluster import cache_folder

MODULE, VERSION = "github.com/tsenart/vegeta/v12", "v12.13.0"
OK = "200"
NS_PER_S, NS_PER_MS = 10**9, 1e6

# A row of `vegeta encode -to=csv`: the start in nanoseconds since 1970, the HTTP status, the latency in nanoseconds, …
Row = list[str]


def vegeta() -> str:
    """Return the path of Vegeta; build it from its Go module if it does not exist."""
    folder = cache_folder(os.environ) / "vegeta"
    if not (folder / "vegeta").exists():
        go = shutil.which("go") or "go"
        environment = {**os.environ, "GOBIN": str(folder)}
        subprocess.run([go, "install", f"{MODULE}@{VERSION}"], check=True, env=environment)
    return str(folder / "vegeta")


def attack_command(targets: Path, results: Path, rate: int, duration_s: int) -> list[str]:
    """Return the command that sends requests to the targets in turn, at a rate per second."""
    options = [f"-targets={targets}", f"-output={results}", f"-rate={rate}/1s", f"-duration={duration_s}s"]
    return [vegeta(), "attack", *options]


def rows_of(results: Path) -> list[Row]:
    """Return a row per request."""
    encoded = subprocess.run([vegeta(), "encode", "-to=csv", str(results)], check=True, capture_output=True, text=True)
    return list(csv.reader(io.StringIO(encoded.stdout)))


def report_of(rows: Iterable[Row]) -> dict[str, Any]:
    """Return what Vegeta reports about the requests."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    words = [vegeta(), "report", "-type=json"]
    printed = subprocess.run(words, check=True, capture_output=True, text=True, input=text.getvalue()).stdout
    report: dict[str, Any] = json.loads(printed)
    return report


def percentiles_ns(report: Mapping[str, Any]) -> dict[float, int]:
    """Return the percentiles of a report, in nanoseconds, by percentage."""
    return {percentage: report["latencies"][f"{percentage:g}th"] for percentage in (50.0, 90.0, 95.0, 99.0)}


def latency_ms(row: Row) -> float:
    """Return the latency of a request."""
    return int(row[2]) / NS_PER_MS


def write_generic_csv(rows: Iterable[Row], path: Path) -> None:
    """Write the requests as the generic CSV. A request's time there is its end; the kind of an error is its status."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["time_s", "latency_ms", "error"])
        for row in rows:
            seconds, nanoseconds = divmod(int(row[0]) + int(row[2]), NS_PER_S)
            error = "" if row[1] == OK else row[1]
            writer.writerow([f"{seconds}.{nanoseconds:09d}", latency_ms(row), error])

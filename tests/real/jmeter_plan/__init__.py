"""JMeter with Cassandra's Java driver, fetched with Maven, and a plan that reads and writes.

The plan has 4 threads. Each writes and reads a number of times, and one of 100 reads is a failed sample without a
request.
"""

import csv
import os
import re
from collections.abc import Iterator, Sequence
from math import ceil
from pathlib import Path
from zipfile import ZipFile

from cli.setup.demo.demo_cluster import cache_folder
from cli.setup.demo.java_runtime import fetch_jars, find_java
from tests.real.nodes import no_progress

VERSION = "5.6.3"
DEPENDENCIES = (
    f"org.apache.jmeter:ApacheJMeter:{VERSION}",
    f"org.apache.jmeter:ApacheJMeter_components:{VERSION}",
    f"org.apache.jmeter:ApacheJMeter_config:{VERSION}",
    f"org.apache.jmeter:ApacheJMeter_java:{VERSION}",
    "org.apache.cassandra:java-driver-core:4.18.1",
)
PLAN = Path(__file__).parent / "plan.jmx"
THREADS, DEFAULT_LOOPS = 4, ">1500<"
_TOTALS = re.compile(r"summary = +(\d+) in .* Err: +(\d+) ")


def schema(replicas: int) -> tuple[str, ...]:
    """Return the statements that create the plan's table."""
    replication = f"{{'class': 'SimpleStrategy', 'replication_factor': {replicas}}}"
    return (
        f"CREATE KEYSPACE IF NOT EXISTS jmeter WITH replication = {replication}",
        "CREATE TABLE IF NOT EXISTS jmeter.numbers (k int PRIMARY KEY, v int)",
    )


def jmeter_jars() -> Path:
    """Return the directory with the jars of JMeter and of Cassandra's driver; fetch them if it does not exist."""
    return fetch_jars(cache_folder(os.environ) / f"jmeter-{VERSION}", DEPENDENCIES, no_progress, f"JMeter {VERSION}")


def jmeter_words(home: Path) -> list[str]:
    """Return the beginning of JMeter's command line, after filling its home directory `home`."""
    jars = jmeter_jars()
    with ZipFile(jars / f"ApacheJMeter_config-{VERSION}.jar") as config:
        config.extractall(home, [name for name in config.namelist() if name.startswith("bin/")])
    # JMeter prints a stack trace for each of these directories that does not exist.
    for name in ("ext", "junit"):
        (home / "lib" / name).mkdir(parents=True)
    words = [find_java(os.environ), "-Xmx256m", f"-Djmeter.home={home}", "-cp", f"{jars}/*"]
    options = ["org.apache.jmeter.NewDriver", "-d", home, "-j", home / "jmeter.log"]
    return [str(word) for word in (*words, *options)]


def jmeter_command(home: Path, host: str, result: Path, loops: int) -> list[str]:
    """Return the command that runs the plan and writes `result`; each thread reads and writes `loops` times.

    `host` is a node of the cluster; `home` becomes JMeter's home directory.
    """
    words = jmeter_words(home)
    # JMeter's functions, such as __P, are found only in an installed JMeter.
    plan = home / PLAN.name
    plan.write_text(PLAN.read_text().replace(DEFAULT_LOOPS, f">{loops}<"))
    return [*words, "-n", "-t", str(plan), "-l", str(result), f"-Jhost={host}"]


def printed_totals(printed: str) -> tuple[int, int]:
    """Return the number of samples and of failed samples in what JMeter printed."""
    samples, failed = _TOTALS.findall(printed)[-1]
    return int(samples), int(failed)


def samples_of(result: Path) -> list[dict[str, str]]:
    """Return the rows of JMeter's result."""
    with result.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def percentiles_ms(samples: Sequence[dict[str, str]], label: str, percentages: Sequence[float]) -> Iterator[int]:
    """Yield percentiles of the times of a label's successful samples."""
    times_ms = sorted(int(row["elapsed"]) for row in samples if row["label"] == label and row["success"] == "true")
    for percentage in percentages:
        yield times_ms[ceil(round(percentage * len(times_ms)) / 100) - 1]

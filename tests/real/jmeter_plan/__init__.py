"""JMeter with Cassandra's Java driver, fetched with Maven, and a plan that reads and writes.

The plan has 4 threads. Each writes and reads 1500 times, and one of 100 reads is a failed sample without a request.
"""

import os
from pathlib import Path
from zipfile import ZipFile

from cli.demo.demo_cluster import cache_folder
from cli.demo.java_runtime import fetch_jars, find_java
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
WRITES, READS, FAILED_READS = 6000, 6000, 60
SCHEMA = (
    "CREATE KEYSPACE IF NOT EXISTS jmeter WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    "CREATE TABLE IF NOT EXISTS jmeter.numbers (k int PRIMARY KEY, v int)",
)


def jmeter_jars() -> Path:
    """Return the directory with the jars of JMeter and of Cassandra's driver; fetch them if it does not exist."""
    return fetch_jars(cache_folder(os.environ) / f"jmeter-{VERSION}", DEPENDENCIES, no_progress, f"JMeter {VERSION}")


def jmeter_command(home: Path, host: str, result: Path) -> list[str]:
    """Return the command that runs the plan on a node and writes `result`; `home` becomes JMeter's home directory."""
    jars = jmeter_jars()
    with ZipFile(jars / f"ApacheJMeter_config-{VERSION}.jar") as config:
        config.extractall(home, [name for name in config.namelist() if name.startswith("bin/")])
    # JMeter prints a stack trace for each of these directories that does not exist.
    for name in ("ext", "junit"):
        (home / "lib" / name).mkdir(parents=True)
    words = [find_java(os.environ), "-Xmx256m", f"-Djmeter.home={home}", "-cp", f"{jars}/*"]
    options = ["-n", "-d", home, "-t", PLAN, "-l", result, "-j", home / "jmeter.log", f"-Jhost={host}"]
    return [str(word) for word in (*words, "org.apache.jmeter.NewDriver", *options)]

"""Fetches and builds the programs that the tests on real servers need.

On a new machine, fetching and building take minutes, so they are done in advance, alongside tests that mostly wait.
"""

import os
from concurrent.futures import ThreadPoolExecutor

from cli.setup.demo.demo_cluster import cache_folder
from cli.setup.demo.java_runtime import fetch_cassandra
from tests.real.agents import JOLOKIA_VERSIONS, jar_of
from tests.real.conftest import VERSIONS
from tests.real.jmeter_plan import jmeter_jars
from tests.real.nodes import no_progress
from tests.real.percli import percli
from tests.real.stores import influxd


def from_maven() -> None:
    """Fetch Cassandra, Jolokia and JMeter one after another, because the downloads share Maven's repository."""
    for jolokia in JOLOKIA_VERSIONS:
        jar_of(jolokia)
    for version in VERSIONS:
        fetch_cassandra(version, cache_folder(os.environ), no_progress)
    jmeter_jars()


def built_by_go() -> None:
    """Build InfluxDB and percli one after the other, because each build uses all cores."""
    influxd()
    percli()


def main() -> None:
    """Fetch and build concurrently. Raises the first error."""
    with ThreadPoolExecutor() as pool:
        for running in [pool.submit(from_maven), pool.submit(built_by_go)]:
            running.result()


if __name__ == "__main__":
    main()

"""Fetches and builds the programs that the tests on real servers need.

On a new machine, fetching and building take minutes, so they are done in advance, alongside tests that mostly wait.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from cli.errors import CasstatError
from cli.setup.demo.demo_cluster import cache_folder
from cli.setup.demo.java_runtime import fetch_cassandra
from tests.real.agents import JOLOKIA_VERSIONS, jar_of
from tests.real.conftest import VERSIONS
from tests.real.jmeter_plan import jmeter_jars
from tests.real.nodes import no_progress
from tests.real.percli import percli
from tests.real.stores import influxd

# The network may fail, and Go gives up on a TLS handshake after 10 s, even if this machine is busy.
ATTEMPTS = 5
PAUSE_S = 5.0


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


def repeated(fetch: Callable[[], None]) -> None:
    """Call `fetch` until it succeeds, at most ATTEMPTS times; each call continues where the last one failed."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            return fetch()
        except (subprocess.SubprocessError, AssertionError, OSError, CasstatError) as error:
            if attempt == ATTEMPTS:
                raise
            sys.stderr.write(f"{fetch.__name__}: attempt {attempt}: {error}\n")
            time.sleep(PAUSE_S)
    return None


def main() -> None:
    """Fetch and build concurrently. Raises the first error."""
    with ThreadPoolExecutor() as pool:
        for running in [pool.submit(repeated, from_maven), pool.submit(repeated, built_by_go)]:
            running.result()


if __name__ == "__main__":
    main()

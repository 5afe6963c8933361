"""JMeter's result, imported by `casstat record`, agrees with JMeter and with the node."""

import json
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cli.recordings.recording_arguments import results_in
from collector.load_results.client_result import ClientInterval
from tests.real.conftest import StartNode
from tests.real.jmeter_plan import THREADS, jmeter_command, percentiles_ms, printed_totals, samples_of, schema
from tests.real.programs import PATIENCE_S, program, session
from tests.real.recorded_reads import rows_of

pytestmark = pytest.mark.beside
# The driver's own queries, such as those for the cluster's topology, also count as reads.
TOLERANCE = 0.01
# The ratio of a histogram bucket's bounds.
BUCKET = 1.2
MS_PER_S = 1000.0
LOOPS = 1500
WRITES = READS = THREADS * LOOPS
FAILED_READS = READS // 100


@dataclass(frozen=True)
class JMeterRun:
    """A recorded run of JMeter: its directory, the rows of JMeter's result, and what JMeter printed."""

    folder: Path
    samples: list[dict[str, str]]
    printed: str

    @property
    def totals(self) -> dict[str, ClientInterval]:
        """The imported total of each operation."""
        (result,) = results_in(self.folder)
        return {operation.name: total for operation in result.operations if (total := operation.summary) is not None}

    @property
    def summary(self) -> dict[str, Any]:
        """The values of the run's only phase."""
        (phase,) = json.loads((self.folder / "summary.json").read_text())
        values: dict[str, Any] = phase["values"]
        return values


@pytest.fixture(scope="module")
def run(start_node: StartNode, tmp_path_factory: pytest.TempPathFactory) -> JMeterRun:
    node, folder = start_node("5.0.8"), tmp_path_factory.mktemp("jmeter")
    with session(node.spec.address) as driver:
        for statement in schema(replicas=1):
            driver.execute(statement)
    result = folder / "result.jtl"
    command = jmeter_command(folder / "home", node.spec.address, result, LOOPS)
    words: list[str | Path] = [
        "record",
        node.spec.jolokia_url,
        "-o",
        folder / "run",
        "--client",
        result,
        "--no-report",
        "--",
        *command,
    ]
    done = subprocess.run(program(*words), capture_output=True, text=True, timeout=3 * PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr
    return JMeterRun(folder / "run", samples_of(result), (folder / "run" / "command.log").read_text())


def test_the_imported_operations_are_those_that_jmeter_counts(run: JMeterRun) -> None:
    completed = {name: total.completed for name, total in run.totals.items()}
    failed = {name: total.failed for name, total in run.totals.items()}
    assert (completed["read"], completed["write"]) == (READS - FAILED_READS, WRITES)
    assert (failed["read"], failed["write"]) == (FAILED_READS, 0)
    assert run.totals["read"].errors == {"NotSent": FAILED_READS}
    samples = sum(completed.values()) + sum(failed.values())
    assert (samples, sum(failed.values())) == printed_totals(run.printed)
    assert Counter(sample["label"] for sample in run.samples) == Counter(completed) + Counter(failed)


@pytest.mark.parametrize("operation", ["read", "write"])
def test_percentiles_are_those_of_the_samples(run: JMeterRun, operation: str) -> None:
    latency = run.totals[operation].service
    assert latency is not None
    percentages = (50.0, 95.0, 99.0, 99.9)
    imported_ms = [value_s and value_s * MS_PER_S for value_s in latency.percentiles_s(percentages)]
    assert imported_ms == list(percentiles_ms(run.samples, operation, percentages))


def test_the_node_served_the_operations_that_the_client_completed(run: JMeterRun) -> None:
    for operation, count in (("reads", READS - FAILED_READS), ("writes", WRITES)):
        rows = rows_of(run.folder / "merged")
        served = sum(float(row[operation]) for row in rows if row["node"] == "cluster" and row[operation])
        assert served == pytest.approx(count, rel=TOLERANCE)


@pytest.mark.parametrize("operation", ["read", "write"])
def test_the_clients_p99_includes_the_nodes(run: JMeterRun, operation: str) -> None:
    # JMeter's times are whole milliseconds.
    assert run.summary[f"{operation}_p99_ms"] <= BUCKET * (run.summary[f"client_{operation}_p99_ms"] + 1)

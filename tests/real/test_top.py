"""`casstat top` in a terminal, with three real nodes and their agents; one node is killed and restarted."""

import csv
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cli.setup.demo.demo_node import Node
from collector.model import histogram
from collector.runs.run_file import read_run
from tests.faults.agents import RunningAgent
from tests.faults.program import Program
from tests.faults.tmux import Screen
from tests.real.conftest import CLUSTER, StartNodes
from tests.real.nodes import light, no_progress
from tests.real.programs import load, output, program
from tests.real.recorded_reads import increases, rows_of

ADDRESSES = tuple(CLUSTER.addresses())
RATE = 200.0
PATIENCE_S = 180.0


@dataclass(frozen=True)
class Cluster:
    nodes: tuple[Node, ...]
    agents: tuple[RunningAgent, ...]
    journals: Path


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, start_cluster: StartNodes) -> Iterator[Cluster]:
    """Yield a cluster of three nodes, each with an agent, and a load on the first node."""
    home = tmp_path_factory.mktemp("top")
    nodes = tuple(start_cluster())
    with ExitStack() as stack:
        agents = tuple(
            stack.enter_context(
                RunningAgent(
                    home / f"journal-{node.spec.address}",
                    "--jolokia",
                    node.spec.jolokia_url,
                    "-m",
                    str(node.spec.jmx_port),
                    listen=f"{node.spec.address}:17199",
                )
            ).wait_until_serving()
            for node in nodes
        )
        stack.enter_context(load(nodes[0], RATE))
        yield Cluster(nodes, agents, home)


def start(node: Node) -> None:
    with light():
        node.start()
    node.wait(no_progress)


def total(row: dict[str, Any]) -> float:
    cluster = row["cluster"]
    return sum(cluster[name] or 0.0 for name in ("reads_per_s", "writes_per_s"))


def is_settled(row: dict[str, Any]) -> bool:
    """Return whether a row has rates of all nodes, and the load has begun."""
    rates = [node["reads_per_s"] for node in row["nodes"]]
    return row["nodes_counted"] == CLUSTER.nodes and None not in rates and total(row) > 0


def settled(*arguments: str) -> dict[str, Any]:
    """Return the first row of `top` that is settled."""
    with Program("top", *arguments, "--format", "json") as program:
        ends_s = time.monotonic() + PATIENCE_S
        row = program.row()
        while not is_settled(row):
            assert time.monotonic() < ends_s, row
            row = program.row()
        return row


def test_the_seed_discovers_the_cluster(cluster: Cluster) -> None:
    row = settled("--seed", ADDRESSES[0])
    assert sorted(node["node"] for node in row["nodes"]) == list(ADDRESSES)
    of_all = row["cluster"]
    assert of_all["read_p99_ms"] > 0
    assert sum(node["reads_per_s"] for node in row["nodes"]) == pytest.approx(of_all["reads_per_s"], abs=0.01)


def test_a_jolokia_url_as_the_seed_discovers_the_cluster(cluster: Cluster) -> None:
    row = settled("--seed", cluster.nodes[0].spec.jolokia_url)
    assert len(row["nodes"]) == len(cluster.nodes)
    assert row["cluster"]["read_p99_ms"] > 0


def test_the_cluster_percentile_matches_the_merged_buckets_of_the_agents(cluster: Cluster) -> None:
    from collector.live.interval_assembler import IntervalAssembler
    from collector.model.sample_json import decoded
    from exporters.live.frame import Wanted, frame_of
    from exporters.live.live_columns import EVERY, value

    settled("--seed", ADDRESSES[0])
    assembler = IntervalAssembler(1.0)
    samples_by_time = [
        {sample.tick.time_s: sample for sample in map(decoded, agent.json("/api/v1/samples?since=0"))}
        for agent in cluster.agents
    ]
    # On a busy machine, an agent may have missed a tick, so use the latest tick that all agents share.
    tick_s = max(set.intersection(*map(set, samples_by_time)))
    samples = [by_time[tick_s] for by_time in samples_by_time]
    for agent, sample in zip(cluster.agents, samples, strict=True):
        assembler.add_node(agent.base, agent.base)
        assembler.add_sample(agent.base, sample, tick_s + 0.2)
    frame = frame_of(assembler.close(int(tick_s) - 1, tick_s + 0.5), Wanted(EVERY))
    series = ("cassandra_client_request_duration_seconds", "Read")
    buckets = [sample.values[series] for sample in samples if series in sample.values]
    expected = histogram.quantile(histogram.merge([b for b in buckets if isinstance(b, histogram.Buckets)]), 0.99)
    assert expected is not None
    assert value(frame.cluster, "read_p99_ms") == pytest.approx(1000 * expected)


def test_a_fetched_period_counts_every_operation_of_every_node(cluster: Cluster, tmp_path: Path) -> None:
    settled("--seed", ADDRESSES[0])
    output("fetch", *ADDRESSES, "--last", "20s", "-o", tmp_path / "run")
    output("merge", tmp_path / "run", "-i", "1", "-o", tmp_path / "merged")
    with (tmp_path / "merged" / "rows.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    nodes = read_run(tmp_path / "run").nodes
    assert [node.name for node in nodes] == list(ADDRESSES)
    totals = []
    for node, agent in zip(nodes, cluster.agents, strict=True):
        assert node.begin_s is not None
        assert node.end_s is not None
        counted = sum(float(row["reads"]) for row in rows if row["node"] == node.name and row["reads"])
        assert counted == increases(agent.journal, node.begin_s, node.end_s)
        totals.append(counted)
    assert max(totals) > 0


def test_the_screen_shows_a_killed_node_and_its_recovery(cluster: Cluster, tmp_path: Path) -> None:
    with recorded(tmp_path / "run"):
        watch_an_outage(cluster.nodes[1])
    assert_counts_every_operation(tmp_path / "run", cluster)


@contextmanager
def recorded(run: Path) -> Iterator[None]:
    """Record a run until the block ends, and then interrupt it with Ctrl-C."""
    command = ("record", *ADDRESSES, "-o", str(run), "--", "sh", "-c", "echo up; exec sleep 600")
    with subprocess.Popen(
        program(*command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as recorder:
        assert recorder.stdout is not None
        assert recorder.stdout.readline() == "up\n"
        yield
        recorder.send_signal(signal.SIGINT)
        _, errors = recorder.communicate(timeout=PATIENCE_S)
    assert recorder.returncode == 128 + signal.SIGINT, errors
    assert "Traceback" not in errors


def assert_counts_every_operation(run: Path, cluster: Cluster) -> None:
    """Assert that the tables count all reads that the agents recorded, and show that a node was missing."""
    rows = rows_of(run / "merged")
    nodes = read_run(run).nodes
    assert [node.name for node in nodes] == list(ADDRESSES)
    for node, agent in zip(nodes, cluster.agents, strict=True):
        assert node.begin_s is not None
        assert node.end_s is not None
        counted = sum(float(row["reads"]) for row in rows if row["node"] == node.name and row["reads"])
        assert counted == increases(agent.journal, node.begin_s, node.end_s)
    counted = sum(float(row["reads"]) for row in rows if row["node"] == "cluster" and row["reads"])
    assert counted == sum(
        increases(agent.journal, node.begin_s or 0, node.end_s or 0)
        for node, agent in zip(nodes, cluster.agents, strict=True)
    )
    # The outage may be too short to cover a whole interval of five seconds, so use intervals of one second.
    output("merge", run, "-i", "1", "-o", run / "seconds")
    assert {"0", "1"} <= {row["nodes_missing"] for row in rows_of(run / "seconds") if row["node"] == "cluster"}


def watch_an_outage(node: Node) -> None:
    """Kill and restart a node, and watch the outage on two screens."""
    shown = ("top", "--seed", ADDRESSES[0])
    with Screen(80, 24, *shown) as small, Screen(120, 40, *shown) as large:
        for screen in (small, large):
            screen.until(lambda text: "3 of 3 nodes" in text, PATIENCE_S)
        node.kill()
        for screen in (small, large):
            screen.until(lambda _, of=screen: "Cassandra has not answered for" in of.row(ADDRESSES[1]), PATIENCE_S)  # type: ignore[misc]
            screen.until(lambda text: "2 of 3 nodes" in text, PATIENCE_S)
            # The filter that shows only nodes with problems keeps the killed node.
            screen.press("f")
            screen.until(lambda _, of=screen: "Cassandra has not answered" in of.row(ADDRESSES[1]), PATIENCE_S)  # type: ignore[misc]
            screen.press("Escape")
        start(node)
        for screen in (small, large):
            screen.until(lambda text: "3 of 3 nodes" in text, PATIENCE_S)
            screen.press("Left")
            screen.until(lambda text: "PAUSED" in text)
            # Go back to the outage.
            while "2 of 3 nodes" not in screen.text:
                before = screen.lines[0]
                screen.press("[")
                screen.until(lambda text, before=before: not text.startswith(before))  # type: ignore[misc]
            screen.press("q")
            screen.until(lambda text: "left with 0" in text)


def test_the_tables_and_the_view_of_one_node_are_shown(cluster: Cluster) -> None:
    with Screen(120, 50, "top", "--seed", ADDRESSES[0], "--columns", "tables") as screen:
        screen.until(lambda text: "demo.t000" in text or ".t0" in text, PATIENCE_S)
        # Only the first node coordinates requests. The others may be listed before it, as the worst.
        screen.press("1", "s", *"node", "Enter")
        screen.press("Enter")
        screen.until(lambda text: "HeapMB" in text and "RdMax" in text, PATIENCE_S)
        screen.press("q")
        screen.until(lambda text: "left with 0" in text)


def test_top_replays_the_agents_recordings(cluster: Cluster) -> None:
    with Screen(120, 40, "top", "--replay", str(cluster.journals), "-i", "1") as screen:
        screen.until(lambda text: ADDRESSES[0] in text and ADDRESSES[1] in text, PATIENCE_S)
        screen.press("Space")
        screen.until(lambda text: "PAUSED" in text)
        screen.press("S")
        # The agents are still recording, and some may not have written the last tick yet, so go back ten seconds. If
        # that is within the outage of an earlier test, continue until its end.
        end = screen.lines[0]
        screen.press("1", "0", "Enter")
        screen.until(lambda text: "PAUSED" in text and not text.startswith(end))
        while "3 of 3 nodes" not in screen.text:
            before = screen.lines[0]
            screen.press("]")
            screen.until(lambda text, before=before: not text.startswith(before))  # type: ignore[misc]
        screen.press("q")
        screen.until(lambda text: "left with 0" in text)

"""Recordings of a cluster in which a node is killed are correct, and a killed recorder loses at most one tick."""

import csv
import json
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from cli.setup.demo.demo_node import Node
from collector.model.histogram import Buckets, quantile, upper_bounds_of
from collector.recording.frames import Damage
from collector.recording.journal_files import journal_files
from collector.recording.reader import Entry, read
from tests.real.nodes import light
from tests.real.programs import PATIENCE_S, Row, bucket_counts, casstat, load, output, prepare, program

RATE = 300
# The number of rows without a response of the killed node, so that the merge has intervals in which it is down.
OUTAGE_ROWS = 12
KILLS = 25
AT_ONCE = 5
READS = ("cassandra_client_requests_total", "Read")
WRITES = ("cassandra_client_requests_total", "Write")
Cells = dict[str, str]


@contextmanager
def loaded(nodes: Sequence[Node]) -> Iterator[dict[str, int]]:
    """Put all nodes under load until the block ends; then the yielded dictionary holds the client's counts."""
    addresses = [node.spec.address for node in nodes]
    command = [sys.executable, "-m", "cli.setup.demo.load_generator", *addresses, "--rate", str(RATE)]
    counts: dict[str, int] = {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as running:
        try:
            yield counts
        finally:
            running.terminate()
        out, _ = running.communicate(timeout=PATIENCE_S)
    counts.update(json.loads(out))


def is_loaded(rows: list[Row]) -> bool:
    return (rows[-1]["reads_per_s"] or 0) > 0


def is_idle(rows: list[Row]) -> bool:
    return bool(rows[-1]["reads_per_s"] == 0 == rows[-1]["writes_per_s"])


def merged(folder: Path, into: Path, *arguments: str) -> list[Cells]:
    output("merge", folder, "-o", into, *arguments)
    with (into / "rows.tsv").open(newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def total(rows: Sequence[Cells], node: str) -> float:
    return sum(float(row[word] or 0) for row in rows if row["node"] == node for word in ("reads", "writes"))


def entries(folder: Path) -> list[Entry]:
    """Return the entries of a recording; fail if it is damaged."""
    records = [record for path in journal_files(folder) for record in read(path)]
    assert not [record for record in records if isinstance(record, Damage)]
    return [record for record in records if isinstance(record, Entry)]


def before_the_first_tick(folder: Path, killed_s: float) -> float:
    """Return how many operations a node counted between its restart and the next scrape; no interval includes them."""
    counts: dict[tuple[str, ...], Any] = {}
    origin = ""
    for entry in entries(folder):
        for scrape in entry.snapshot.scrapes:
            if scrape.source == "cassandra" and scrape.values:
                if entry.snapshot.tick.time_s < killed_s:
                    origin = scrape.origin
                elif scrape.origin != origin:
                    for series in (READS, WRITES):
                        if series in scrape.values:
                            counts.setdefault(series, scrape.values[series])
    return float(sum(counts.values()))


def test_a_cluster_with_a_killed_node_is_merged_correctly(three_nodes: list[Node], tmp_path: Path) -> None:
    nodes, recording = three_nodes, tmp_path / "recording"
    with ExitStack() as stack:
        urls = [node.spec.jolokia_url for node in nodes]
        lines = [stack.enter_context(casstat("1", "--jolokia", url, "-w", str(recording))) for url in urls]
        for line in lines:
            line.wait_for_rows(2)
        before = [{scope: bucket_counts(node, scope) for scope in ("Read", "Write")} for node in nodes]
        whole_s = time.time()
        with loaded(nodes):
            for line in lines:
                line.wait_for(is_loaded)
                line.wait_for_rows(5)
        for line in lines:
            line.wait_for(is_idle)
            line.wait_for_rows(3)
        after = [{scope: bucket_counts(node, scope) for scope in ("Read", "Write")} for node in nodes]
        killed_from_s = time.time()
        # No request is running when the node is killed, so each is counted by the node or has failed.
        nodes[2].kill()
        killed_s = time.time()
        with loaded(nodes) as counted:
            lines[0].wait_for(is_loaded)
            start = len(lines[2].rows)
            lines[2].wait_for(lambda rows: sum(row["reads_per_s"] is None for row in rows[start:]) >= OUTAGE_ROWS)
            started_s = time.time()
            with light():
                nodes[2].start()
            lines[2].wait_for(is_loaded, 2 * PATIENCE_S)
        for line in lines:
            line.wait_for(is_idle)
        ended_s = time.time()

    # For the time when all three nodes were running, the percentiles must be those of the nodes' summed buckets.
    rows = merged(recording, tmp_path / "whole", "-i", "86400", "--from", str(whole_s), "--until", str(killed_from_s))
    (row,) = [row for row in rows if row["node"] == "cluster"]
    assert (row["nodes"], row["nodes_missing"]) == ("3", "0")
    for scope, word in (("Read", "read"), ("Write", "write")):
        increase = [
            sum(of[at] for of in (counts[scope] for counts in after)) - sum(counts[scope][at] for counts in before)
            for at in range(len(before[0][scope]))
        ]
        buckets = Buckets(upper_bounds_of("seconds", len(increase)), tuple(increase))
        for q in (50, 95, 99):
            expected_s = quantile(buckets, q / 100)
            assert expected_s is not None
            assert float(row[f"{word}_p{q}_ms"]) == pytest.approx(1000 * expected_s, abs=0.00006)
        assert float(row[f"{word}s"]) == sum(increase)

    # The killed node has a gap; the cluster rows continue and count one missing node.
    rows = merged(recording, tmp_path / "killed", "--from", str(killed_from_s), "--until", str(ended_s))
    third, killed = nodes[2].spec.address, int(killed_s)
    within = [row for row in rows if killed + 5 < float(row["time"]) <= started_s]
    assert {(row["nodes"], row["nodes_missing"]) for row in within if row["node"] == "cluster"} == {("2", "1")}
    assert {row["reads_per_s"] for row in within if row["node"] == third} <= {""}
    unseen = before_the_first_tick(recording / third, killed_s)
    client = counted["reads"] + counted["writes"]
    counted_operations = total(rows, "cluster") + unseen
    assert total(rows, "cluster") == sum(total(rows, node.spec.address) for node in nodes)
    # The nodes also count the driver's own reads, and requests that fail, possibly twice because of a retry.
    assert client <= counted_operations <= (client + 2 * counted["errors"]) * 1.005

    # The plot shows the gap, too.
    output("plot", recording, "-o", tmp_path / "plots", "--from", str(killed_from_s), "-i", "1")
    assert (tmp_path / "plots" / "nodes.png").stat().st_size > 10_000
    with (tmp_path / "plots" / "nodes.tsv").open(newline="") as file:
        drawn = list(csv.reader(file, delimiter="\t"))
    (column,) = [at for at, name in enumerate(drawn[0]) if third in name and re.search(r"\breads_per_s", name)]
    gap = [row for row in drawn[1:] if killed + 2 < float(row[0]) <= started_s]
    assert gap
    assert {row[column] for row in gap} == {"NaN"}


def test_a_replay_prints_the_rows_that_were_printed_while_recording(jolokia_node: Node, tmp_path: Path) -> None:
    recording = tmp_path / "recording"
    shown = ["--format", "json", "--wide", "-k", "demo", "-p", "--tables", "2"]
    prepare(jolokia_node, "--tables", "3")
    with load(jolokia_node, 200, "--tables", "3"):
        live = output("1", "8", "--jolokia", jolokia_node.spec.jolokia_url, "-w", recording, *shown)
    assert live.count("\n") == 8
    assert output("replay", recording, *shown) == live


def test_a_replay_of_a_nodetool_recording_prints_the_same_rows(node: Node, tmp_path: Path) -> None:
    recording = tmp_path / "recording"
    options = ["--source", "nodetool", "-m", str(node.spec.jmx_port)]
    live = subprocess.run(
        program("1", "15", *options, "-w", recording, "--format", "json"),
        stdout=subprocess.PIPE,
        check=True,
        timeout=90,
    )
    assert output("replay", recording, "--format", "json").encode() == live.stdout


def kill_at_random(node: Node, folder: Path, after_s: float) -> tuple[float, float]:
    """Kill a recorder `after_s` after its first row.

    Return the times of the last row but one that was printed (0 if there is none) and of the last readable tick.
    """
    command = program("0.1", "--jolokia", node.spec.jolokia_url, "-w", folder, "--format", "json")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as recorder:
        assert recorder.stdout is not None
        row = recorder.stdout.readline()
        time.sleep(after_s)
        recorder.send_signal(signal.SIGKILL)
        rows = [row, *recorder.stdout]
    whole = [line for line in rows if line.endswith("\n")]
    return float(json.loads(whole[-2])["time"]) if len(whole) > 1 else 0.0, readable(folder)[-1]


def readable(folder: Path) -> list[float]:
    """Return the times of all readable ticks; no record but the last may be damaged."""
    records = [record for path in journal_files(folder) for record in read(path)]
    damage = [record for record in records if isinstance(record, Damage)]
    assert damage in ([], records[-1:])
    return [record.snapshot.tick.time_s for record in records if isinstance(record, Entry)]


def test_a_killed_recorder_loses_at_most_one_tick(node: Node, tmp_path: Path) -> None:
    prepare(node)
    moments = random.Random(4)  # noqa: S311 - not for secrets
    with load(node, 200), ThreadPoolExecutor(AT_ONCE) as pool:
        runs = [pool.submit(kill_at_random, node, tmp_path / str(n), moments.random()) for n in range(KILLS)]
        ends = [run.result() for run in runs]
    assert len(ends) == KILLS
    for printed_s, recorded_s in ends:
        assert recorded_s >= printed_s
    # A new recorder keeps the existing ticks in the directory and starts a new session.
    again = tmp_path / "0"
    output("0.1", "5", "--jolokia", node.spec.jolokia_url, "-w", again, "--format", "json")
    assert len(readable(again)) > 5
    assert json.loads(output("journal", "info", again, "--format", "json"))["ticks"] == len(readable(again))

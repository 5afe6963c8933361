"""What was recorded is what happened, whatever befalls the nodes and the recorder."""

import csv
import json
import random
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

from cli.demo.demo_node import Node
from collector.journal.frames import Damage
from collector.journal.reader import Entry, read
from collector.journal.segments import journal_files
from collector.model.histogram import Buckets, quantile, upper_bounds_of
from tests.real.nodes import light
from tests.real.programs import PATIENCE_S, bucket_counts, casstat, load, prepare

RATE = 300
# Of the load during which a node is killed: before, without it, and while it starts.
THIRD_S = 12
KILLS = 25
AT_ONCE = 5
READS = ("cassandra_client_requests_total", "Read")
WRITES = ("cassandra_client_requests_total", "Write")
Cells = dict[str, str]


def program(*arguments: str | Path) -> list[str]:
    return [sys.executable, "-m", "cli", *map(str, arguments)]


def output(*arguments: str | Path) -> str:
    done = subprocess.run(program(*arguments), capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


@contextmanager
def loaded(nodes: Sequence[Node], seconds: float) -> Iterator[dict[str, int]]:
    """Load all nodes for so long; after the block, what the client counted."""
    addresses = [node.spec.address for node in nodes]
    command = [
        sys.executable,
        "-m",
        "cli.demo.load_generator",
        *addresses,
        "--rate",
        str(RATE),
        "--seconds",
        str(seconds),
    ]
    counts: dict[str, int] = {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as running:
        yield counts
        out, _ = running.communicate(timeout=PATIENCE_S)
    counts.update(json.loads(out))


def merged(folder: Path, into: Path, *arguments: str) -> list[Cells]:
    output("merge", folder, "-o", into, *arguments)
    with (into / "rows.tsv").open(newline="") as file:
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))


def total(rows: Sequence[Cells], node: str) -> float:
    return sum(float(row[word] or 0) for row in rows if row["node"] == node for word in ("reads", "writes"))


def entries(folder: Path) -> list[Entry]:
    """Return what was recorded; nothing of it is damaged."""
    found = [each for path in journal_files(folder) for each in read(path)]
    assert not [each for each in found if isinstance(each, Damage)]
    return [each for each in found if isinstance(each, Entry)]


def before_the_first_tick(folder: Path, killed_s: float) -> float:
    """Return what a node had counted since it was started again when it first told: no tick covers that."""
    found: dict[tuple[str, ...], Any] = {}
    origin = ""
    for entry in entries(folder):
        for scrape in entry.snapshot.scrapes:
            if scrape.source == "cassandra" and scrape.values:
                if entry.snapshot.tick.time_s < killed_s:
                    origin = scrape.origin
                elif scrape.origin != origin:
                    for series in (READS, WRITES):
                        if series in scrape.values:
                            found.setdefault(series, scrape.values[series])
    return float(sum(found.values()))


def test_three_nodes_of_which_one_is_killed_become_one_true_graph(three_nodes: list[Node], tmp_path: Path) -> None:
    nodes, recording = three_nodes, tmp_path / "recording"
    with ExitStack() as stack:
        urls = [node.spec.jolokia_url for node in nodes]
        lines = [stack.enter_context(casstat("1", "--jolokia", url, "-w", str(recording))) for url in urls]
        for line in lines:
            line.wait_for_rows(2)
        before = [{scope: bucket_counts(node, scope) for scope in ("Read", "Write")} for node in nodes]
        whole_s = time.time()
        with loaded(nodes, 10):
            pass
        for line in lines:
            line.wait_for_rows(3)
        after = [{scope: bucket_counts(node, scope) for scope in ("Read", "Write")} for node in nodes]
        killed_from_s = time.time()
        with loaded(nodes, 3 * THIRD_S) as counted:
            time.sleep(THIRD_S)
            nodes[2].kill()
            killed_s = time.time()
            time.sleep(THIRD_S)
            with light():
                nodes[2].start()
        for line in lines:
            line.wait_for_rows(3)
        ended_s = time.time()

    # All that happened while all three were there: the percentiles are those of the nodes' own buckets, added up.
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

    # The one that was killed is a hole; what the others did goes on, and is marked as theirs alone.
    rows = merged(recording, tmp_path / "killed", "--from", str(killed_from_s), "--until", str(ended_s))
    third, killed = nodes[2].spec.address, int(killed_s)
    within = [row for row in rows if killed + 5 < float(row["time"]) <= killed + THIRD_S]
    assert {(row["nodes"], row["nodes_missing"]) for row in within if row["node"] == "cluster"} == {("2", "1")}
    assert {row["reads_per_s"] for row in within if row["node"] == third} <= {""}
    assert all(float(row["reads_per_s"]) > RATE / 4 for row in within if row["node"] == "cluster")
    unseen = before_the_first_tick(recording / third, killed_s)
    client = counted["reads"] + counted["writes"]
    # What the node coordinated after its last tick is in no count: at most a second of its third of the load.
    told = total(rows, "cluster") + unseen
    assert total(rows, "cluster") == sum(total(rows, node.spec.address) for node in nodes)
    assert client * 0.995 - RATE / 3 <= told <= client * 1.005
    assert unseen < 0.05 * client

    # The plot has the gap too.
    output("plot", recording, "-o", tmp_path / "plots", "--from", str(killed_from_s), "-i", "1")
    assert (tmp_path / "plots" / "nodes.png").stat().st_size > 10_000
    with (tmp_path / "plots" / "nodes.tsv").open(newline="") as file:
        drawn = list(csv.reader(file, delimiter="\t"))
    (column,) = [at for at, name in enumerate(drawn[0]) if third in name and "reads_per_s" in name]
    hole = [row for row in drawn[1:] if killed + 2 < float(row[0]) <= killed + THIRD_S]
    assert hole
    assert {row[column] for row in hole} == {"NaN"}


def test_a_replay_prints_what_the_line_printed(each_node: Node, tmp_path: Path) -> None:
    recording = tmp_path / "recording"
    shown = ["--format", "json", "--wide", "-k", "demo", "-p", "--tables", "2"]
    prepare(each_node, "--tables", "3")
    with load(each_node, 200, "--tables", "3"):
        live = output("1", "8", "--jolokia", each_node.spec.jolokia_url, "-w", recording, *shown)
    assert live.count("\n") == 8
    assert output("replay", recording, *shown) == live


def test_a_replay_of_nodetools_slow_answers_too(node: Node, tmp_path: Path) -> None:
    recording = tmp_path / "recording"
    asked = ["--source", "nodetool", "-m", str(node.spec.jmx_port)]
    live = subprocess.run(
        program("1", "15", *asked, "-w", recording, "--format", "json"), stdout=subprocess.PIPE, check=True, timeout=90
    )
    assert output("replay", recording, "--format", "json").encode() == live.stdout


def kill_at_random(node: Node, folder: Path, after_s: float) -> tuple[float, float]:
    """Record until the recorder is killed; return the times of the last row and of the last tick that can be read."""
    command = program("0.1", "--jolokia", node.spec.jolokia_url, "-w", folder, "--format", "json")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as recorder:
        assert recorder.stdout is not None
        row = recorder.stdout.readline()
        time.sleep(after_s)
        recorder.send_signal(signal.SIGKILL)
        rows = [row, *recorder.stdout]
    whole = [line for line in rows if line.endswith("\n")]
    return float(json.loads(whole[-1])["time"]), readable(folder)[-1]


def readable(folder: Path) -> list[float]:
    """Return the times of all ticks; only the very last may have been cut."""
    found = [each for path in journal_files(folder) for each in read(path)]
    damage = [each for each in found if isinstance(each, Damage)]
    assert damage in ([], found[-1:])
    return [each.snapshot.tick.time_s for each in found if isinstance(each, Entry)]


def test_a_recorder_that_is_killed_loses_one_tick_at_most(node: Node, tmp_path: Path) -> None:
    prepare(node)
    moments = random.Random(4)  # noqa: S311 - no secret
    with load(node, 200), ThreadPoolExecutor(AT_ONCE) as pool:
        runs = [pool.submit(kill_at_random, node, tmp_path / str(n), moments.random()) for n in range(KILLS)]
        ends = [run.result() for run in runs]
    assert len(ends) == KILLS
    for printed_s, recorded_s in ends:
        assert recorded_s >= printed_s - 0.15
    # Whoever goes on in the same folder finds what is there, and begins anew.
    again = tmp_path / "0"
    output("0.1", "5", "--jolokia", node.spec.jolokia_url, "-w", again, "--format", "json")
    assert len(readable(again)) > 5
    assert json.loads(output("journal", "info", again, "--format", "json"))["ticks"] == len(readable(again))

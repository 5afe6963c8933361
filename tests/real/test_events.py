"""What a real cluster's log tells is in the rows of the ticks in which it happened."""

import subprocess
import sys
from pathlib import Path

from cli.demo.demo_node import Node
from tests.real.nodes import light
from tests.real.programs import PATIENCE_S, Casstat, Row, casstat, nodetool, write


def told(rows: list[Row], kind: str, words: str) -> list[tuple[int, Row]]:
    """Return the events of a kind with these words, and in which row each is."""
    return [
        (at, event)
        for at, row in enumerate(rows)
        for event in row["events"]
        if event["kind"] == kind and words in event["text"]
    ]


def assert_in_its_tick(line: Casstat, kind: str, words: str) -> None:
    """Wait for the event; fail if it is not in the row of the tick in which it happened, or in the next."""
    line.wait_for(lambda rows: bool(told(rows, kind, words)))
    line.wait_for_rows(1)
    at, event = told(line.rows, kind, words)[0]
    assert at >= 2, "the line had hardly begun"
    began, ended = line.rows[at - 2]["time"], line.rows[at]["time"]
    assert began <= event["time"] <= ended


def follow(node: Node) -> list[str]:
    return ["1", "-d", str(node.spec.log), "--jolokia", node.spec.jolokia_url]


def test_flush_compaction_repair_and_a_node_that_goes_down(three_nodes: list[Node]) -> None:
    first, second, _ = three_nodes
    write(first)
    with casstat(*follow(first)) as line:
        line.wait_for_rows(3)
        nodetool(first, "flush", "demo")
        assert_in_its_tick(line, "flush", "flushed demo.t000")
        write(first)
        nodetool(first, "flush", "demo")
        nodetool(first, "compact", "demo")
        assert_in_its_tick(line, "compaction", "compacted demo.t000")
        nodetool(first, "repair", "-full", "demo")
        for words in (" of demo started (full)", "session", "finished in"):
            assert_in_its_tick(line, "repair", words)
        second.kill()
        assert_in_its_tick(line, "node_down", f"{second.spec.address} is DOWN")
        with light():
            second.start()
        assert_in_its_tick(line, "node_up", f"{second.spec.address} is UP")


def test_events_go_to_a_file_and_the_rows_stay_alone(three_nodes: list[Node], tmp_path: Path) -> None:
    node, events = three_nodes[0], tmp_path / "events.txt"
    events.write_text("of an earlier run\n")
    command = [*follow(node), "-l", str(events)]
    with casstat(*command) as line:
        line.wait_for_rows(2)
        write(node)
        nodetool(node, "flush", "demo")
        line.wait_for(lambda rows: bool(told(rows, "flush", "demo.t000")))
    earlier, *lines = events.read_text().splitlines()
    assert earlier == "of an earlier run"
    flushed = [each for each in lines if " flush flushed demo.t000 " in each]
    assert flushed
    assert f" {node.spec.address} " in flushed[0]


def test_a_full_disk_under_the_events_is_told_and_the_line_goes_on(three_nodes: list[Node]) -> None:
    command = [*follow(three_nodes[0]), "-l", "/dev/full"]
    whole = [sys.executable, "-m", "cli", *command, "--format", "json"]
    with subprocess.Popen(whole, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout
        # It follows the log from its first row on.
        rows = [running.stdout.readline()]
        write(three_nodes[0])
        nodetool(three_nodes[0], "flush", "demo")
        rows += [running.stdout.readline() for _ in range(7)]
        running.terminate()
        _, said = running.communicate(timeout=PATIENCE_S)
    assert all(rows)
    assert "No space left on device" in said
    assert "Traceback" not in said

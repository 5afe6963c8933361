"""Events in a real cluster's logs appear in the rows of their ticks."""

import json
import subprocess
import sys
from pathlib import Path

from cli.setup.demo.demo_node import Node
from tests.real.nodes import light
from tests.real.programs import PATIENCE_S, Casstat, Row, casstat, nodetool, write


def events_with_rows(rows: list[Row], kind: str, words: str) -> list[tuple[int, Row]]:
    """Return the events of a kind that contain `words`, each with the index of its row."""
    return [
        (at, event)
        for at, row in enumerate(rows)
        for event in row["events"]
        if event["kind"] == kind and words in event["text"]
    ]


def assert_event(line: Casstat, kind: str, words: str) -> None:
    """Wait for the event, which must not be in a row before its tick; a busy machine delays the log's lines.

    It may be in the row of the tick before it if that tick was late, so that the log was read after its time.
    """
    line.wait_for(lambda rows: bool(events_with_rows(rows, kind, words)))
    at, event = events_with_rows(line.rows, kind, words)[0]
    assert event["time"] < line.rows[at]["time"] + line.rows[at]["interval_s"]


def follow(node: Node) -> list[str]:
    return ["1", "-d", str(node.spec.log), "--jolokia", node.spec.jolokia_url]


def test_flush_compaction_repair_and_an_outage_are_in_no_row_before_their_tick(three_nodes: list[Node]) -> None:
    first, second, _ = three_nodes
    write(first)
    with casstat(*follow(first)) as line:
        line.wait_for_rows(3)
        nodetool(first, "flush", "demo")
        assert_event(line, "flush", "flushed demo.t000")
        write(first)
        nodetool(first, "flush", "demo")
        nodetool(first, "compact", "demo")
        assert_event(line, "compaction", "compacted demo.t000")
        nodetool(first, "repair", "-full", "demo")
        for words in (" of demo started (full)", "session", "finished in"):
            assert_event(line, "repair", words)
        second.kill()
        assert_event(line, "node_down", f"{second.spec.address} is DOWN")
        with light():
            second.start()
        assert_event(line, "node_up", f"{second.spec.address} is UP")


def test_events_are_appended_to_a_file(three_nodes: list[Node], tmp_path: Path) -> None:
    node, events = three_nodes[0], tmp_path / "events.txt"
    events.write_text("of an earlier run\n")
    command = [*follow(node), "-l", str(events)]
    with casstat(*command) as line:
        line.wait_for_rows(2)
        write(node)
        nodetool(node, "flush", "demo")
        line.wait_for(lambda rows: bool(events_with_rows(rows, "flush", "demo.t000")))
    earlier, *lines = events.read_text().splitlines()
    assert earlier == "of an earlier run"
    flushed = [line for line in lines if " flush flushed demo.t000 " in line]
    assert flushed
    assert f" {node.spec.address} " in flushed[0]


def test_a_full_disk_for_events_is_an_error_and_the_program_continues(three_nodes: list[Node]) -> None:
    command = [*follow(three_nodes[0]), "-l", "/dev/full"]
    command_line = [sys.executable, "-m", "cli", *command, "--format", "json"]
    with subprocess.Popen(command_line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout
        # Once the first row has been printed, the log is being followed.
        assert running.stdout.readline()
        write(three_nodes[0])
        nodetool(three_nodes[0], "flush", "demo")
        # An event is written to the file before its row is printed.
        while row := running.stdout.readline():
            if any(event["kind"] == "flush" for event in json.loads(row)["events"]):
                break
        assert running.stdout.readline()
        running.terminate()
        _, errors = running.communicate(timeout=PATIENCE_S)
    assert "No space left on device" in errors
    assert "Traceback" not in errors

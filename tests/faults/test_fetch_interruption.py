"""Ctrl-C ends `casstat fetch` at once; recordings that are already complete are kept."""

import signal
import threading
import time
from contextlib import closing
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from collector.agents import agent_client, fetching
from collector.runs.run_file import read_run
from tests.faults.fake_agent_server import (
    FILE_PATH,
    FakeAgentServer,
    Respond,
    responses,
    responses_with_file,
    send,
    send_one_byte,
)
from tests.faults.fetched_nodes import TICKS, RecordedNode, fetch, ticks_of


def press_ctrl_c() -> None:
    """Send SIGINT to the main thread, in which the command runs."""
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def interrupting(part: bytes) -> Respond:
    """Return a response that sends `part` of a body, if any, interrupts the command and then stalls."""

    def respond(handler: BaseHTTPRequestHandler) -> None:
        if part:
            send(handler, part, 1000)
        press_ctrl_c()
        # Wait until the client shuts down the connection.
        handler.rfile.read(1)

    return respond


@pytest.mark.parametrize("part", [b"", b"["])
@pytest.mark.parametrize("path", ["node", "time", "journal", FILE_PATH])
def test_ctrl_c_ends_a_fetch_from_an_agent_that_stalls(
    path: str, part: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_client, "TIMEOUT_S", 200.0)
    begin_s = time.monotonic()
    with closing(FakeAgentServer({**responses_with_file(b""), path: interrupting(part)})) as server:
        code, out, _ = fetch(capsys, server.address, "--last", "1h", "-o", tmp_path / "run")
    assert (code, out) == (130, "")
    assert not (tmp_path / "run").exists()
    # The fetch ended long before a request would have timed out.
    assert time.monotonic() - begin_s < agent_client.TIMEOUT_S / 2


def test_ctrl_c_ends_the_pause_before_another_attempt(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_client, "RETRY_DELAY_S", 3600.0)

    def truncated(handler: BaseHTTPRequestHandler) -> None:
        send_one_byte(handler)
        press_ctrl_c()

    with closing(FakeAgentServer(responses_with_file(truncated))) as server:
        code, _, _ = fetch(capsys, server.address, "--last", "1h", "-o", tmp_path / "run")
    assert code == 130


def test_nodes_that_are_complete_on_ctrl_c_are_kept(
    recorded_node: RecordedNode, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "MAX_PARALLEL", 1)
    run = tmp_path / "run"
    with closing(FakeAgentServer(responses(journal=interrupting(b"")))) as server:
        addresses = (recorded_node.address, server.address)
        code, out, errors = fetch(capsys, *addresses, *recorded_node.whole_period, "-o", run)
    assert code == 130
    assert out.startswith("n1: 600 ticks")
    assert errors == f"casstat: {run}: the run is incomplete\n"
    complete, interrupted = read_run(run).nodes
    assert (complete.ticks, complete.problem, len(complete.clocks)) == (TICKS, "", 1)
    assert (interrupted.ticks, interrupted.problem, interrupted.folder) == (0, "interrupted", "")
    assert ticks_of(run) == ticks_of(recorded_node.journal)
    assert [path.name for path in (run / "nodes").iterdir()] == ["n1"]

"""Ctrl-C ends `casstat fetch` at once; recordings that are already complete are kept."""

import concurrent.futures.thread
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from cli.runs import fetch_program
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
from tests.faults.fetched_nodes import TICKS, RecordedNode, fetch, serving_history, ticks_of


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


# The code in which a fetch may be interrupted: all functions of its own modules, and some of the thread pool's.
INTERRUPTED_FILES = {fetch_program.__file__, fetching.__file__, concurrent.futures.thread.__file__}
INTERRUPTED_CODE = {threading.Thread.start.__code__}


class InterruptAtLine:
    """A trace function that sends SIGINT to this thread before one of the lines that a fetch executes in it."""

    def __init__(self, at: int) -> None:
        """`at` is the number of the line, counted from 1."""
        self._at = at
        self.lines = 0

    def __call__(self, frame: FrameType, event: str, _: Any) -> Callable[..., Any] | None:
        code = frame.f_code
        if code.co_filename not in INTERRUPTED_FILES and code not in INTERRUPTED_CODE:
            return None
        if event == "line":
            self.lines += 1
            if self.lines == self._at:
                signal.raise_signal(signal.SIGINT)
        return self


def test_ctrl_c_anywhere_in_a_fetch_leaves_a_run_or_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serving_history(tmp_path / "journal", "n1", 20) as node:
        interrupt_every_line(node, tmp_path, capsys)


def interrupt_every_line(node: RecordedNode, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for at in range(1, 10_000, 3):
        run, interrupt = folder / str(at), InterruptAtLine(at)
        sys.settrace(interrupt)
        try:
            code, _, _ = fetch(capsys, node.address, *node.period(0, 9), "-o", run)
        finally:
            sys.settrace(None)
        if interrupt.lines < at:
            assert code == 0
            assert at > 100
            return
        assert code == 130, at
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert not [thread for thread in threading.enumerate() if "ThreadPoolExecutor" in thread.name], at
        if run.exists():
            (fetched,) = read_run(run).nodes
            assert (fetched.ticks, fetched.problem) == (10, ""), at
            assert len(ticks_of(run)) >= 10
    pytest.fail("the fetch does not end")

"""`casstat fetch` to a full disk."""

import io
from contextlib import closing
from errno import ENOSPC
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from collector.agents import agent_client, fetching
from collector.agents.addresses import parse_address
from collector.agents.agent_client import AgentClient
from collector.http.access import Access
from collector.runs.run_file import read_run
from tests.collector.fakes import file_size_limit
from tests.faults.fake_agent_server import FILE_PATH, FakeAgentServer, send_one_byte
from tests.faults.fetched_nodes import RecordedNode, fetch, serving_history


def test_a_full_disk_is_an_error_and_leaves_no_incomplete_file(
    recorded_node: RecordedNode, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    with file_size_limit(1000):
        code, _, errors = fetch(capsys, recorded_node.address, *recorded_node.whole_period, "-o", run)
    assert code == 1
    assert errors.splitlines() == [f"casstat: {run}/nodes/n1: File too large", f"casstat: {run}: File too large"]
    assert not run.exists()


def test_nodes_that_are_complete_when_the_disk_is_full_are_kept(
    recorded_node: RecordedNode, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "MAX_PARALLEL", 1)
    run = tmp_path / "run"
    with serving_history(tmp_path / "short", "n0", ticks=10, begin_s=recorded_node.begin_s) as short:
        addresses = (short.address, recorded_node.address)
        with file_size_limit(2 * short.file.stat().st_size + 2000):
            code, out, errors = fetch(capsys, *addresses, *recorded_node.whole_period, "-o", run)
    assert code == 1
    assert out.startswith("n0: 10 ticks")
    assert errors.splitlines() == [
        f"casstat: {run}/nodes/n1: File too large",
        f"casstat: {run}: the run is incomplete",
        f"casstat: {run}: File too large",
    ]
    assert [(node.ticks, node.problem) for node in read_run(run).nodes] == [
        (10, ""),
        (0, f"{run}/nodes/n1: File too large"[:200]),
    ]


class FullDisk(io.BytesIO):
    """A file whose buffered content cannot be written when its position is changed."""

    def seek(self, _offset: int, _whence: int = 0, /) -> int:
        raise OSError(ENOSPC, "No space left on device")


def test_a_full_disk_is_noticed_when_a_download_starts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_client, "RETRY_DELAY_S", 0.0)

    def from_the_beginning(handler: BaseHTTPRequestHandler) -> None:
        del handler.headers["Range"]
        send_one_byte(handler)

    with closing(FakeAgentServer({FILE_PATH: from_the_beginning})) as server:
        client = AgentClient(parse_address(server.address, "http"), Access())
        with closing(client), pytest.raises(OSError, match="No space left"):
            client.download(f"/api/v1/{FILE_PATH}", 1000, FullDisk())

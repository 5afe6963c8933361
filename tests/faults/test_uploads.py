"""An agent uploads its journal through an outage of the store and a SIGKILL of the agent, and nothing is lost."""

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest

from collector.recording.object_store import ObjectStore
from collector.recording.recording_download import download_recordings
from collector.recording.writer import files_of
from tests.faults.agents import RunningAgent
from tests.faults.fake_jolokia import FakeJolokia
from tests.s3_server import S3Server

URL = "s3://bucket/prod"


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[S3Server]:
    """A server with the bucket, which is stopped."""
    server = S3Server()
    for name, value in server.environ.items():
        monkeypatch.setenv(name, value)
    server.start()
    system = fsspec.filesystem("s3", skip_instance_cache=True)
    system.mkdir("bucket")
    server.stop()
    yield server
    server.start()
    system.rm("bucket", recursive=True)
    server.stop()


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in files_of(folder)}


def test_nothing_is_lost(fake: FakeJolokia, s3: S3Server, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    options = ("--jolokia", fake.url, "-i", "0.2", "--node", "n1", "--to", URL)
    with RunningAgent(journal, *options) as agent:
        agent.wait_until_serving()
        agent.until(lambda: agent.value("casstat_sink_up") == 0.0)
        agent.wait_for_line(f"{URL}/n1: ")
        s3.start()
        agent.until(lambda: agent.value("casstat_sink_up") == 1.0)
        agent.end(signal.SIGKILL)
    with RunningAgent(journal, *options) as agent:
        agent.wait_until_serving()
        run = agent.post("/api/v1/runs", {"name": "mixed"})
        agent.post(f"/api/v1/runs/{run['id']}/end", {})
        runs = f"{URL}/n1/runs.jsonl"
        agent.until(lambda: fsspec.filesystem("s3", use_listings_cache=False).exists(runs))
        s3.stop()
        assert agent.end(signal.SIGTERM, 40.0) == 0
    s3.start()
    with RunningAgent(journal, *options) as agent:
        agent.wait_until_serving()
        assert agent.end(signal.SIGTERM, 40.0) == 0
    store = ObjectStore(URL)
    download_recordings(store, store.objects(), tmp_path / "copy")
    assert contents(tmp_path / "copy" / "n1") == contents(journal)
    assert len(contents(journal)) == 3
    (begun, *_) = (tmp_path / "copy" / "n1" / "runs.jsonl").read_text().splitlines()
    assert "mixed" in json.dumps(json.loads(begun))
    s3.stop()


def test_an_invalid_bucket_is_logged_once_and_sampling_continues(
    fake: FakeJolokia, s3: S3Server, tmp_path: Path
) -> None:
    s3.start()
    with RunningAgent(tmp_path / "journal", "--jolokia", fake.url, "--node", "n1", "--to", "s3://missing/x") as agent:
        agent.wait_until_serving()
        agent.wait_for_line("s3://missing/x: ")
        agent.until(lambda: agent.value("casstat_sink_failures_total") >= 2)
        agent.until(lambda: agent.value("casstat_ticks_total") >= 3)
        assert agent.value("casstat_sink_up") == 0.0
        # The last upload, when the agent stops, may not end in time on a busy machine.
        assert sum("s3://missing/x" in line for line in agent.stderr_lines) == 1

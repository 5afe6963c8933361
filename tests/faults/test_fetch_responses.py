"""`casstat fetch` from agents whose responses or journal files are wrong."""

import re
import time
from contextlib import closing
from pathlib import Path

import pytest
import zstandard

from collector.recording.frames import resealed
from collector.recording.journal_files import journal_files
from collector.recording.reader import read_lines
from collector.runs.run_file import read_run
from tests.collector.merge.recorded_nodes import busy, record
from tests.faults.fake_agent_server import (
    FILE,
    FILE_PATH,
    NODE,
    SIZE_BYTES,
    TIME_S,
    FakeAgentServer,
    Responses,
    listing,
    responses,
    responses_with_file,
    times,
)
from tests.faults.fetched_nodes import fetch

NOT_A_NODE = "does not describe a node"
NOT_A_LIST = "is not a list of journal files"
MISBEHAVIOUR: dict[str, tuple[Responses, str]] = {
    "a web server": ({}, "HTTP 404: path not found"),
    "not JSON": ({"node": b"<html>"}, "the response is not JSON (hint: check the agent's address)"),
    "an endless response": ({"node": b"[" + b" " * (17 << 20)}, "response larger than 16 MiB"),
    "other JSON": (responses(node=b"[1]"), NOT_A_NODE),
    "wrong types": (responses(node=b'{"node": 1, "casstat": 2, "interval_s": 3}'), NOT_A_NODE),
    "an interval of NaN": (responses(node=NODE.replace(b"1.0}", b"NaN}")), NOT_A_NODE),
    "a huge interval": (responses(node=NODE.replace(b"1.0}", b"1" * 400 + b"}")), NOT_A_NODE),
    "an interval of 0": (responses(node=NODE.replace(b"1.0}", b"0}")), NOT_A_NODE),
    "a huge name": (responses(node=NODE.replace(b"n1", b"n" * (1 << 20))), NOT_A_NODE),
    "a huge time": (responses(time=times(10**400, 1)), NOT_A_NODE),
    "a time that is a string": (responses(time=times("1700000000", 1_700_000_000)), NOT_A_NODE),
    "a time that is not a number": (responses(time=times("x", 1)), NOT_A_NODE),
    "a time that is a boolean": (responses(time=times(True, True)), NOT_A_NODE),
    "an infinite time": (responses(time=b'{"received_s": 1e999, "sent_s": 1}'), NOT_A_NODE),
    "a distant clock": (responses(time=times(1e308, 1e308)), "a century off"),
    "a clock that runs backwards": (
        responses(time=times(1_700_000_000, 1_600_000_000)),
        "the agent's clock was changed during the measurement",
    ),
    "not a list": (responses(journal=b"{}"), NOT_A_LIST),
    "a list of numbers": (responses(journal=b"[1]"), NOT_A_LIST),
    "no sizes": (responses(journal=b'[{"name": "a.jsonl.zst"}]'), NOT_A_LIST),
    "a path in another directory": (
        responses(journal=listing("../../etc/x.jsonl.zst")),
        "'../../etc/x.jsonl.zst' is not the name of a journal file",
    ),
    "too many files": (
        responses(journal=listing(*(f"{number}.jsonl.zst" for number in range(10_001)))),
        "more than 10000 files in the time range",
    ),
    "a deleted file": (responses(journal=listing(FILE)), f"{FILE}: http://"),
    "a damaged file": (responses_with_file(bytes(SIZE_BYTES)), "1 damaged section in its journal"),
}


@pytest.mark.parametrize("kind", MISBEHAVIOUR)
def test_an_agent_that_misbehaves_is_a_one_line_error(
    kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    agent, message = MISBEHAVIOUR[kind]
    with closing(FakeAgentServer(agent)) as server:
        code, out, errors = fetch(capsys, server.address, "--last", "1h", "-o", tmp_path / "run")
    assert (code, out) == (1, "")
    first, second = errors.splitlines()
    assert message in first
    assert second == "casstat: nothing fetched"
    assert not (tmp_path / "run").exists()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A journal file with 400 ticks, the first of them at TIME_S."""
    (path,) = journal_files(record(tmp_path / "fake", busy("n1", 400, begin_s=TIME_S)))
    return path


def period(begin_s: float, end_s: float) -> tuple[str, ...]:
    """Return the options for a period, in seconds since the first tick of the file.

    The agent's clock shows TIME_S now, so the period is relative to the current time on this host.
    """
    now_s = time.time()
    return "--from", str(begin_s + now_s), "--until", str(end_s + now_s)


def test_a_file_that_is_listed_twice_is_fetched_once(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(FakeAgentServer(responses_with_file(file.read_bytes(), (FILE, FILE)))) as server:
        code, out, _ = fetch(capsys, server.address, *period(-10, 500), "-o", tmp_path / "run")
        assert server.paths.count(FILE_PATH) == 1
    assert code == 0
    assert "n1: 400 ticks" in out


def test_a_file_with_an_unusable_name_is_skipped_and_reported(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = (FILE, ".hidden.jsonl.zst", "a/b.jsonl.zst", "\x1b.jsonl.zst", "x" * 300 + ".jsonl.zst", "x.txt")
    with closing(FakeAgentServer(responses_with_file(file.read_bytes(), names))) as server:
        code, out, errors = fetch(capsys, server.address, *period(-10, 500), "-o", tmp_path / "run")
    assert code == 1
    assert "n1: 400 ticks" in out
    assert "'.hidden.jsonl.zst' is not the name of a journal file" in errors
    assert re.search(r" \(and \d more\)\n", errors)
    (node,) = read_run(tmp_path / "run").nodes
    assert len(node.problem) <= 200


def test_a_file_whose_header_cannot_be_encoded_as_json_is_an_error(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A number in the header is too large for a float, so it is read as infinity, which JSON cannot represent."""
    texts = [line for line in read_lines(file) if isinstance(line, bytes)]
    lines = (resealed(text.replace(b'{"head":{', b'{"head":{"extra":1e999,')) for text in texts)
    content = zstandard.compress(b"".join(lines))
    with closing(FakeAgentServer(responses_with_file(content))) as server:
        code, out, errors = fetch(capsys, server.address, *period(390, 500), "-o", tmp_path / "run")
    assert (code, out) == (1, "")
    assert "malformed record" in errors.splitlines()[0]
    assert not (tmp_path / "run").exists()

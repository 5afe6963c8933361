"""`casstat fetch` writes the recordings of a past period to a run directory."""

import io
import sys
import time
from contextlib import closing
from datetime import datetime
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from cli.runs.fetch_program import Progress
from collector.agents import agent_nodes
from collector.agents.addresses import parse_address
from collector.agents.agent_client import AgentClient, AgentUnavailableError
from collector.agents.fetching import FetchRange, fetched, ticks_in
from collector.http.access import Access
from collector.recording.writer import SUFFIX, files_of
from collector.runs.run import NodeClock, RunNode
from collector.runs.run_file import read_run
from tests.collector.merge.recorded_nodes import busy, record, timed
from tests.faults.fake_agent_server import FakeAgentServer, responses, send
from tests.faults.fetched_nodes import TICKS, RecordedNode, fetch, serving_history, ticks_of
from tests.faults.recording_agent import HOST, serving


def test_the_ticks_of_a_period_are_fetched_from_every_node(
    recorded_node: RecordedNode, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, begin_s = tmp_path / "run", recorded_node.begin_s
    with serving_history(tmp_path / "other", "n2", begin_s=begin_s) as other:
        addresses = (recorded_node.address, other.address)
        code, out, errors = fetch(capsys, *addresses, *recorded_node.period(300, 359), "-o", run, "--name", "night")
    assert (code, errors) == (0, "")
    assert [line.split(",")[0] for line in out.splitlines()] == ["n1: 60 ticks", "n2: 60 ticks", str(run)]
    content = read_run(run)
    assert (content.name, content.begin_s, content.end_s) == ("night", begin_s + 300, begin_s + 359)
    for node in content.nodes:
        assert (node.ticks, node.begin_s, node.end_s) == (60, begin_s + 300, begin_s + 359)
        (clock,) = node.clocks
        assert abs(clock.offset_s) <= clock.error_s < 1
    times_s = ticks_of(run / "nodes" / "n1")
    # Earlier ticks are kept as well, so that the first rates are known.
    assert set(range(300, 360)) <= {time_s - begin_s for time_s in times_s}
    assert max(times_s) == begin_s + 359
    assert sorted(path.name for path in run.iterdir()) == ["nodes", "run.json"]


def test_a_renamed_journal_file_is_fetched(
    recorded_node: RecordedNode, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recorded_node.file.rename(recorded_node.journal / "Monday's night (é).jsonl.zst")
    code, _, errors = fetch(capsys, recorded_node.address, *recorded_node.whole_period, "-o", tmp_path / "run")
    assert (code, errors) == (0, "")
    assert len(ticks_of(tmp_path / "run")) == TICKS


def test_printed_times_are_on_the_clock_of_this_host(
    recorded_node: RecordedNode, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The node's clock is 1000 s ahead.
    measured = NodeClock(recorded_node.begin_s, 1000.0, 0.001)
    monkeypatch.setattr(agent_nodes, "measured_offset", lambda *_: measured)
    period = recorded_node.period(-700, -641)
    code, out, _ = fetch(capsys, recorded_node.address, *period, "-o", tmp_path / "run")
    assert code == 0
    first, last = (datetime.fromtimestamp(recorded_node.begin_s + after_s) for after_s in (-700, -641))
    assert f"n1: 60 ticks, {first} to {last}, clock +1000.0000 s" in out


def test_no_ticks_are_lost_if_a_clock_was_changed_after_an_earlier_measurement(
    recorded_node: RecordedNode, tmp_path: Path
) -> None:
    """The journal may contain times from before and after the change, so both time ranges are fetched."""
    begin_s = recorded_node.begin_s
    wanted = FetchRange(begin_s + 100, begin_s + 200)
    counts = []
    for number, earlier in enumerate(((), (NodeClock(begin_s, 50.0, 0.0),), (NodeClock(begin_s, -50.0, 0.0),))):
        client = AgentClient(parse_address(recorded_node.address, "http"), Access())
        (node,) = fetched([client], wanted, tmp_path / str(number), known=[RunNode("n1", "", clocks=earlier)]).nodes
        counts.append(node.ticks)
    assert counts[1] == counts[2] == counts[0] + 50


def test_ticks_outside_of_the_run_that_may_be_misplaced_are_fetched_but_not_counted(
    recorded_node: RecordedNode, tmp_path: Path
) -> None:
    begin_s = recorded_node.begin_s
    ticks, kept = [], []
    for number, stepped_s in enumerate([(0.0, 0.0), (-60.0, 60.0)]):
        client = AgentClient(parse_address(recorded_node.address, "http"), Access())
        folder = tmp_path / str(number)
        (node,) = fetched([client], FetchRange(begin_s + 200, begin_s + 300, stepped_s), folder).nodes
        ticks.append((node.ticks, node.begin_s, node.end_s))
        kept.append(ticks_in(files_of(folder / node.folder), (begin_s + 150, begin_s + 350))[0].ticks)
    assert ticks[0] == ticks[1]
    assert kept[1] >= 200 > kept[0]


@pytest.mark.parametrize(
    ("offsets_s", "stepped_s"),
    [((3600.0, 0.0), (0.0, 3600.0)), ((-50.0, 20.0), (-50.0, 20.0)), ((-90.0, -90.0), (0, 0))],
)
def test_each_tick_of_the_period_counts_once_if_the_clock_was_set(
    offsets_s: tuple[float, float], stepped_s: tuple[float, float], tmp_path: Path
) -> None:
    """The clock is set 10 s after the period begins, and again 10 s before it ends."""
    begin_s = float(int(time.time()) - TICKS)

    def offset_s(time_s: float) -> float:
        return 0.0 if time_s < begin_s + 210 else offsets_s[time_s >= begin_s + 290]

    record(tmp_path / "journal", timed(busy("n1", TICKS, begin_s=begin_s), offset_s), full_every=1)
    known = [RunNode("n1", "", clocks=(NodeClock(begin_s + 199, 0.0, 0.01),))]
    with serving(tmp_path / "journal", "n1", lambda: time.time() + offsets_s[1]) as served:
        client = AgentClient(parse_address(served.address, "http"), Access())
        wanted = FetchRange(begin_s + 199.5, begin_s + 300.5, stepped_s)
        (node,) = fetched([client], wanted, tmp_path / "run", known=known).nodes
    assert (node.ticks, node.problem) == (101, "")
    shown_s = [time_s + offset_s(time_s) for time_s in (begin_s + after_s for after_s in range(200, 301))]
    assert (node.begin_s, node.end_s) == (min(shown_s), max(shown_s))


class EndingClient(AgentClient):
    """A client of an agent that ends after the download of its journal's first file."""

    def json(self, path: str) -> Any:
        content = super().json(path)
        return [*content, {**content[0], "name": f"later{SUFFIX}"}] if "/journal" in path else content

    def download(self, path: str, *arguments: Any) -> None:
        if "later" in path:
            raise AgentUnavailableError("the agent has ended")
        super().download(path, *arguments)


def test_ticks_outside_of_the_run_are_not_counted_if_a_fetch_ends_early(
    recorded_node: RecordedNode, tmp_path: Path
) -> None:
    begin_s = recorded_node.begin_s
    client = EndingClient(parse_address(recorded_node.address, "http"), Access())
    (node,) = fetched([client], FetchRange(begin_s + 200, begin_s + 259, (-60.0, 60.0)), tmp_path / "run").nodes
    assert (node.ticks, node.begin_s, node.end_s) == (60, begin_s + 200, begin_s + 259)
    assert node.problem == "the agent has ended"


def test_a_node_that_is_down_is_reported_and_the_others_are_fetched(
    recorded_node: RecordedNode, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run, down = tmp_path / "run", f"{HOST}:1"
    code, out, errors = fetch(capsys, recorded_node.address, down, *recorded_node.whole_period, "-o", run)
    assert code == 1
    assert out.startswith("n1: 600 ticks")
    assert errors.splitlines() == [
        f"casstat: http://{down}: Connection refused",
        "casstat: 1 of 2 nodes not fetched completely",
    ]
    assert [node.problem for node in read_run(run).nodes] == ["", f"http://{down}: Connection refused"]


def test_damage_is_a_problem_of_the_node(
    recorded_node: RecordedNode, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    content = bytearray(recorded_node.file.read_bytes())
    half = len(content) // 2
    content[half:] = b"\xff" * half
    recorded_node.file.write_bytes(content)
    code, out, errors = fetch(capsys, recorded_node.address, *recorded_node.whole_period, "-o", tmp_path / "run")
    assert code == 1
    assert out.startswith("n1: ")
    assert "1 damaged section in its journal" in errors
    (node,) = read_run(tmp_path / "run").nodes
    assert "1 damaged section" in node.problem


@pytest.mark.parametrize(
    "first",
    [
        -1000.0,
        # Ticks shortly before the period are fetched as well, but do not belong to it.
        TICKS + 60.0,
    ],
)
def test_a_period_without_ticks_leaves_no_run(
    first: float, recorded_node: RecordedNode, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    period = recorded_node.period(first, first + 10)
    code, out, errors = fetch(capsys, recorded_node.address, *period, "-o", run)
    assert (code, out) == (1, "")
    assert "no ticks were recorded in this time range" in errors
    assert not run.exists()


def test_an_empty_directory_is_kept_if_nothing_was_fetched(
    recorded_node: RecordedNode, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    code, _, errors = fetch(capsys, recorded_node.address, *recorded_node.period(-1000, -990), "-o", run)
    assert code == 1
    assert "no ticks were recorded in this time range" in errors
    assert list(run.iterdir()) == []


def test_an_existing_directory_with_files_is_not_changed(
    recorded_node: RecordedNode, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(tmp_path.rglob("*"))
    code, _, errors = fetch(capsys, recorded_node.address, "--last", "1h", "-o", tmp_path)
    assert code == 1
    assert f"{tmp_path}: already exists (hint: choose another directory)" in errors
    assert sorted(tmp_path.rglob("*")) == before


def test_node_directories_are_created_before_any_journal_is_read_and_removed_after_all_have_been_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    seen = []

    def no_files(handler: BaseHTTPRequestHandler) -> None:
        seen.append(sorted(path.name for path in (run / "nodes").iterdir()))
        send(handler, b"[]")

    agent = responses(journal=no_files)
    with closing(FakeAgentServer(agent)) as one, closing(FakeAgentServer(agent)) as other:
        fetch(capsys, one.address, other.address, "--last", "1h", "-o", run)
    assert seen == [["n1", "n1~2"]] * 2
    assert not run.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "use either --last or --from"),
        (("--last", "1h", "--from", "10:00"), "specify either --last or --from"),
        (("--last", "1h", "--name", "a\tb"), "name must be a single line of 1 to 100 printable characters"),
        (("--from", "-inf"), "the period must begin between 0 and 1e+11 seconds since the epoch"),
        (("--from", "1e15"), "the period must begin between 0 and 1e+11 seconds since the epoch"),
        (("--from", "5", "--until", "inf"), "the period must end at most 1e+11 seconds after the epoch"),
        (("--last", "9999999d"), "the period must begin between 0 and 1e+11 seconds since the epoch"),
        (("--last", "1h", "--until", "10:00"), "--last cannot be combined with --until"),
        (("--from", "100", "--until", "50"), "--until is before --from"),
        (("--last", "soon"), "is not a valid duration"),
        (("--last", "1h", "http://h:8778/jolokia"), "this is a Jolokia agent, which has no recordings"),
        (("--last", "1h", "me:secret@h"), "must not contain a user name and password"),
        (("--last", "1h", "--agent-password-file", "x"), "--agent-password-file requires --agent-user"),
    ],
)
def test_invalid_options_are_errors(
    arguments: tuple[str, ...], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, errors = fetch(capsys, "h", "-o", tmp_path / "run", *arguments)
    assert (code, out) == (2, "")
    assert message in errors
    assert "secret" not in errors
    assert not (tmp_path / "run").exists()


def test_progress_is_erased_and_needs_no_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    progress = Progress(iter(range(10)).__next__)
    progress.add(100_000_000)
    progress.add(-99_000_000)
    assert terminal.getvalue() == "\r100.0 MB fetched\x1b[K\r1.0 MB fetched\x1b[K"
    monkeypatch.setattr(sys, "stderr", None)
    Progress(iter(range(10)).__next__).add(5)

"""`casstat fetch --recover` completes a run, and never loses existing data, whatever fails."""

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from errno import ENOSPC
from pathlib import Path
from shutil import rmtree

import pytest

from cli.main import main
from cli.run_folder import LOCK_FILE, recording
from cli.runs.marks_file import append_mark
from collector.agents.agent_client import AgentClient
from collector.recording.journal_files import journal_files
from collector.runs import run_file
from collector.runs.run import ClientHost, ClockStep, NodeClock, Run, RunCommand, RunNode
from collector.runs.run_file import read_run, write_run
from tests.collector.fakes import file_size_limit
from tests.collector.merge.recorded_nodes import busy, record, timed
from tests.faults.recording_agent import HOST, Node, RecordingAgent, record_around_now, serving

# The number of ticks in each run below.
TICKS = 6


@dataclass(frozen=True)
class Case:
    """A complete run of the nodes n1 and n2, whose agents are running.

    complete  the content of the run's file.
    stop      functions that stop the agents.
    """

    folder: Path
    complete: Run
    agents: tuple[RecordingAgent, RecordingAgent]
    stop: tuple[Callable[[], None], Callable[[], None]]

    def change(self, *nodes: RunNode) -> None:
        """Replace the nodes in the run's file with these."""
        write_run(self.folder, replace(self.complete, nodes=nodes))

    @property
    def nodes(self) -> tuple[RunNode, RunNode]:
        first, second = read_run(self.folder).nodes
        return first, second

    def files(self) -> dict[str, tuple[int, bytes]]:
        """Return the inode and the content of each file of the recordings."""
        return {
            path.relative_to(self.folder).as_posix(): (path.stat().st_ino, path.read_bytes())
            for path in journal_files(self.folder)
        }


@contextmanager
def stoppable(folder: Path, name: str) -> Iterator[tuple[Node, Callable[[], None]]]:
    served = serving(folder, name)
    node = served.__enter__()
    stopped = threading.Event()

    def stop() -> None:
        if not stopped.is_set():
            stopped.set()
            served.__exit__(None, None, None)

    try:
        yield node, stop
    finally:
        stop()


@pytest.fixture
def case(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Case]:
    begin_s = float(int(time.time()) - TICKS - 2)
    folder = tmp_path / "run"
    with stoppable(tmp_path / "j1", "n1") as (one, stop_one), stoppable(tmp_path / "j2", "n2") as (two, stop_two):
        # On a busy machine, the agents' clocks are known only approximately.
        period = ("--from", str(begin_s - 0.4), "--until", str(begin_s + TICKS - 0.6), "-o", str(folder))
        assert main(["fetch", one.address, two.address, *period]) == 0
        capsys.readouterr()
        run = read_run(folder)
        assert [node.ticks for node in run.nodes] == [TICKS, TICKS]
        yield Case(folder, run, (one.agent, two.agent), (stop_one, stop_two))


def recovered(capsys: pytest.CaptureFixture[str], folder: Path) -> tuple[int, str]:
    """Recover a run; return the exit code and what is printed on stderr."""
    code = main(["fetch", "--recover", str(folder)])
    errors = capsys.readouterr().err
    assert "Traceback" not in errors
    return code, errors


def folders(run: Path) -> set[str]:
    """Return the directories of a run, apart from those of its tables."""
    paths = [path.relative_to(run) for path in run.rglob("*") if path.is_dir()]
    return {path.as_posix() for path in paths if path.parts[:2] != ("merged", "rows")}


def test_only_the_incomplete_nodes_are_fetched_again(
    case: Case, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = case.complete.nodes
    case.change(one, replace(two, ticks=2, problem="cut"))
    before = case.files()
    asked: list[str] = []
    monkeypatch.setattr(case.agents[0], "node", lambda: asked.append("n1"))
    code, errors = recovered(capsys, case.folder)
    assert code == 0, errors
    assert asked == []
    assert case.nodes[0] == one
    assert (case.nodes[1].ticks, case.nodes[1].problem, case.nodes[1].folder) == (TICKS, "", two.folder)
    after = case.files()
    assert after.keys() == before.keys()
    assert [after[path] == before[path] for path in sorted(after)] == [True, False]
    assert folders(case.folder) == {"nodes", "nodes/n1", "nodes/n2", "merged", "plots"}


@pytest.mark.parametrize(
    ("ticks", "is_replaced", "problem"),
    [
        (TICKS - 1, True, ""),
        # The same number of ticks, but now the recording is known to be complete.
        (TICKS, True, ""),
        # The agent has since deleted a tick.
        (TICKS + 1, False, "cut"),
    ],
)
def test_a_recording_is_replaced_only_by_a_more_complete_one(
    ticks: int, is_replaced: bool, problem: str, case: Case, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = case.complete.nodes
    case.change(replace(one, ticks=ticks, problem="cut"), two)
    before = case.files()
    code, errors = recovered(capsys, case.folder)
    assert (case.files() != before) == is_replaced
    assert (case.nodes[0].ticks, case.nodes[0].problem) == (TICKS if is_replaced else ticks, problem)
    assert code == (1 if problem else 0)
    assert ("casstat: 1 of 2 nodes not fetched completely" in errors) == bool(problem)


def is_gone(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    case.stop[0]()


def interrupts(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Send SIGINT when an agent's journal is requested; the agent responds only after the signal has taken effect."""
    interrupted = threading.Event()
    interrupt = AgentClient.interrupt

    def interrupting(client: AgentClient) -> None:
        interrupt(client)
        interrupted.set()

    def journal(_: RecordingAgent) -> Path:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        interrupted.wait(60)
        return case.folder

    monkeypatch.setattr(AgentClient, "interrupt", interrupting)
    monkeypatch.setattr(RecordingAgent, "journal", property(journal), raising=False)


def has_lost_its_journal(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    rmtree(case.agents[0].journal)


@pytest.mark.parametrize(
    ("failure", "code", "problem"),
    [
        (is_gone, 1, "Connection refused"),
        (interrupts, 130, "interrupted"),
        (has_lost_its_journal, 1, "no ticks were recorded in this time range"),
    ],
)
def test_nothing_is_lost_if_the_agent_fails(
    failure: Callable[[Case, pytest.MonkeyPatch], None],
    code: int,
    problem: str,
    case: Case,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, two = case.complete.nodes
    case.change(replace(one, ticks=2, problem="cut"), two)
    before = case.files()
    failure(case, monkeypatch)
    assert recovered(capsys, case.folder)[0] == code
    assert case.files() == before
    assert (case.nodes[0].ticks, case.nodes[0].folder, case.nodes[1]) == (2, one.folder, two)
    assert problem in case.nodes[0].problem
    assert not (case.folder / ".recovery").exists()


@pytest.mark.parametrize("limit", [100, 3000])
def test_nothing_is_lost_if_the_disk_is_full(limit: int, case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    """The lower limit affects all files; the higher one, all except the run's file."""
    one, two = case.complete.nodes
    case.change(replace(one, ticks=2, problem="cut"), two)
    assert (case.folder / run_file.FILE).stat().st_size < 3000
    before = case.files()
    with file_size_limit(limit):
        code, errors = recovered(capsys, case.folder)
    assert code == 1
    assert errors.endswith(": File too large\n")
    assert case.files() == before
    assert case.nodes[0].ticks == 2
    assert recovered(capsys, case.folder)[0] == 0
    assert case.nodes[0].ticks == TICKS


def killed(case: Case) -> Run:
    """Return the run as left by a recorder that is killed while the command is running."""
    run = case.complete
    nodes = tuple(RunNode(n.name, n.address, interval_s=1.0, casstat="1", clocks=n.clocks) for n in run.nodes)
    return replace(run, end_s=None, nodes=nodes, command=RunCommand(("true",), run.begin_s))


def private(case: Case, name: str = ".agents/1") -> RunNode:
    """Stop the first node's agent, and write a private agent's journal for the node; return the node."""
    record_around_now(case.folder / name, "n1")
    (case.folder / name / "agent.log").touch()
    case.stop[0]()
    return replace(killed(case).nodes[0], journal=name)


@pytest.mark.parametrize("written_s", [None, TICKS - 1, TICKS + 20])
def test_a_run_whose_recorder_was_killed_ends_when_the_recorder_was_last_alive(
    written_s: float | None, case: Case, capsys: pytest.CaptureFixture[str]
) -> None:
    """`written_s` is the time from the run's beginning to the command's end; None if the command has not ended."""
    run = killed(case)
    assert run.command is not None
    begin_s = run.begin_s
    if written_s is not None:
        run = replace(run, command=replace(run.command, end_s=begin_s + written_s, exit_code=0))
    write_run(case.folder, run)
    append_mark(case.folder, "total", lambda: begin_s + 2)
    alive_s = begin_s + TICKS + 0.5
    (case.folder / LOCK_FILE).touch()
    os.utime(case.folder / LOCK_FILE, (alive_s, alive_s))
    code, errors = recovered(capsys, case.folder)
    assert code == 0, errors
    run = read_run(case.folder)
    assert run.end_s == pytest.approx(max(alive_s, begin_s + (written_s or 0)), abs=1e-3)
    phases = ["main", "total (2)", *(["cool-down"] if written_s == TICKS - 1 else [])]
    assert [phase.name for phase in run.phases] == phases
    assert (run.phases[0].begin_s, run.phases[-1].end_s) == (begin_s, run.end_s)
    assert [node.folder for node in run.nodes] == ["nodes/n1", "nodes/n2"]
    assert not (case.folder / LOCK_FILE).exists()


def test_the_secrets_of_redact_are_replaced(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    run = killed(case)
    write_run(case.folder, replace(run, options=("--redact", r"customer-\d+", "--redact", "(", "n1")))
    append_mark(case.folder, "phase customer-42", lambda: run.begin_s + 2)
    (case.folder / "urls.txt").write_text("customer-42 password=x1\n")
    assert recovered(capsys, case.folder)[0] == 0
    assert "phase REDACTED" in [phase.name for phase in read_run(case.folder).phases]
    assert (case.folder / "urls.txt").read_text() == "REDACTED password=REDACTED\n"
    texts = [path.read_bytes() for path in case.folder.rglob("*") if path.is_file()]
    assert not any(b"customer-42" in text for text in texts)


def test_secrets_of_a_killed_command_that_are_not_known_any_more_are_a_note(
    case: Case, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DB_PASSWORD", "of-the-environment")
    run = killed(case)
    write_run(case.folder, replace(run, command=RunCommand(("load", "--password", "REDACTED"), run.begin_s)))
    (case.folder / "urls.txt").write_text("of-the-environment\n")
    code, errors = recovered(capsys, case.folder)
    assert code == 0
    assert f"casstat runs redact --redact REGEX {case.folder}" in errors
    assert (case.folder / "urls.txt").read_text() == "REDACTED\n"
    assert "REGEX" not in recovered(capsys, case.folder)[1]


@pytest.mark.parametrize("stored", [r"session: (REDACTED+)", "api_key=REDACTED", r"token=REDACTED id=(\S+)"])
def test_an_expression_of_redact_that_is_not_known_any_more_is_a_note(
    stored: str, case: Case, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(case.folder, replace(killed(case), options=("--redact", stored)))
    code, errors = recovered(capsys, case.folder)
    assert code == 0
    assert f"casstat runs redact --redact REGEX {case.folder}" in errors


def test_a_run_never_ends_before_it_begins(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    run = killed(case)
    write_run(case.folder, run)
    (case.folder / LOCK_FILE).touch()
    os.utime(case.folder / LOCK_FILE, (run.begin_s - 5, run.begin_s - 5))
    recovered(capsys, case.folder)
    assert read_run(case.folder).end_s == run.begin_s


def test_without_a_lock_the_end_is_unknown_and_the_run_ends_now(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(case.folder, killed(case))
    before_s = time.time()
    assert recovered(capsys, case.folder)[0] == 0
    assert before_s <= (read_run(case.folder).end_s or 0.0) <= time.time()


def test_the_journal_of_a_private_agent_is_used_if_its_recorder_died(
    case: Case, capsys: pytest.CaptureFixture[str]
) -> None:
    case.change(private(case), killed(case).nodes[1])
    rmtree(case.folder / "nodes")
    code, errors = recovered(capsys, case.folder)
    assert code == 0, errors
    for node in case.nodes:
        assert (node.ticks, node.problem, node.folder, node.journal) == (TICKS, "", f"nodes/{node.name}", "")
        assert (node.begin_s, node.end_s) == (case.complete.nodes[0].begin_s, case.complete.nodes[0].end_s)
    assert all(path.name.endswith(".jsonl.zst") for path in (case.folder / "nodes/n1").iterdir())
    assert folders(case.folder) == {"nodes", "nodes/n1", "nodes/n2", "merged", "plots"}


def test_the_journal_of_a_private_agent_is_used_although_the_clock_was_set(
    case: Case, capsys: pytest.CaptureFixture[str]
) -> None:
    node, run = private(case), killed(case)
    begin_s = case.complete.begin_s
    rmtree(case.folder / node.journal)
    ticks = timed(busy("n1", 40, begin_s=float(int(begin_s)) - 10), lambda s: 60.0 if s >= begin_s + 3 else 0.0)
    record(case.folder / node.journal, ticks)
    rmtree(case.folder / "nodes")
    node = replace(node, clocks=(NodeClock(begin_s - 1, 0.0, 0.001),))
    write_run(case.folder, replace(run, nodes=(node,), clock_steps=(ClockStep(begin_s + 3, 60.0),)))
    (case.folder / LOCK_FILE).touch()
    os.utime(case.folder / LOCK_FILE, (begin_s + TICKS, begin_s + TICKS))
    code, errors = recovered(capsys, case.folder)
    assert code == 0, errors
    run = read_run(case.folder)
    assert round(run.nodes[0].clocks[-1].offset_s) == 60
    summary = json.loads((case.folder / "summary.json").read_text())[0]["values"]
    assert (summary["nodes"], summary["node_intervals_missing"]) == (1, 0)


def test_each_tick_of_a_private_agent_and_of_this_machine_counts_once_although_the_clock_was_set_twice(
    case: Case, capsys: pytest.CaptureFixture[str]
) -> None:
    node, run = private(case), killed(case)
    begin_s = float(round(run.begin_s))
    steps = (ClockStep(begin_s + 1.5, 3600.0), ClockStep(begin_s + 3.5, -3600.0))
    ticks = timed(busy("n1", 40, begin_s=begin_s - 10), lambda s: 3600.0 if begin_s + 1.5 <= s < begin_s + 3.5 else 0.0)
    for folder in (node.journal, "client-hosts/gen"):
        rmtree(case.folder / folder, ignore_errors=True)
        record(case.folder / folder, ticks)
    rmtree(case.folder / "nodes")
    node = replace(node, clocks=(NodeClock(begin_s - 1, 0.0, 0.001),))
    host = ClientHost("gen", "", "client-hosts/gen", 2)
    write_run(case.folder, replace(run, nodes=(node,), client_hosts=(host,), clock_steps=steps))
    (case.folder / LOCK_FILE).touch()
    end_s = begin_s + TICKS - 0.6
    os.utime(case.folder / LOCK_FILE, (end_s, end_s))
    code, errors = recovered(capsys, case.folder)
    assert code == 0, errors
    run = read_run(case.folder)
    assert [recorded.ticks for recorded in run.recorded] == [TICKS, TICKS]
    assert [(recorded.begin_s, recorded.end_s) for recorded in run.recorded] == [(begin_s, begin_s + 3602 + 1)] * 2


def test_agents_are_measured_on_the_clock_of_the_run(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = case.complete.nodes
    nodes = (replace(one, ticks=2, problem="cut"), two)
    # The clock of this machine is ahead of the run's since the run.
    write_run(case.folder, replace(case.complete, nodes=nodes, clock_steps=(ClockStep(0.0, 60.0),)))
    assert recovered(capsys, case.folder)[0] == 0
    assert round(case.nodes[0].clocks[-1].offset_s) == 60


def test_the_journal_of_a_private_agent_is_kept_until_the_runs_file_has_been_written(
    case: Case, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, _: object) -> None:
        raise OSError(ENOSPC, "No space left on device", str(path))

    case.change(private(case), killed(case).nodes[1])
    journal = sorted((case.folder / ".agents/1").iterdir())
    with monkeypatch.context() as patch:
        patch.setattr(run_file, "write_json", full)
        code, errors = recovered(capsys, case.folder)
    assert (code, errors) == (1, f"casstat: {case.folder / run_file.FILE}: No space left on device\n")
    assert sorted((case.folder / ".agents/1").iterdir()) == journal
    assert case.nodes[0].journal == ".agents/1"
    assert recovered(capsys, case.folder)[0] == 0
    assert folders(case.folder) == {"nodes", "nodes/n1", "nodes/n2", "merged", "plots"}


@pytest.mark.parametrize("limit", [100, 3000])
def test_the_journal_of_a_private_agent_is_kept_if_the_disk_is_too_full_for_a_copy(
    limit: int, case: Case, capsys: pytest.CaptureFixture[str]
) -> None:
    partial = replace(private(case), folder="nodes/n1", ticks=2, problem="cut")
    case.change(partial, case.complete.nodes[1])
    before = case.files()
    with file_size_limit(limit):
        code, errors = recovered(capsys, case.folder)
    assert code == 1
    assert errors.endswith(": File too large\n")
    assert {path: content for path, content in case.files().items() if ".recovery" not in path} == before
    assert recovered(capsys, case.folder)[0] == 0
    assert (case.nodes[0].ticks, case.nodes[0].problem) == (TICKS, "")


@pytest.mark.parametrize(("ticks", "problem"), [(2, ""), (TICKS, ""), (TICKS + 1, "cut")])
def test_a_private_journal_replaces_only_a_less_complete_recording(
    ticks: int, problem: str, case: Case, capsys: pytest.CaptureFixture[str]
) -> None:
    case.change(replace(private(case), folder="nodes/n1", ticks=ticks, problem="cut"), case.complete.nodes[1])
    (file,) = (case.folder / "nodes/n1").iterdir()
    before = file.stat().st_ino
    assert recovered(capsys, case.folder)[0] == (1 if problem else 0)
    (file,) = (case.folder / "nodes/n1").iterdir()
    assert (file.stat().st_ino == before) == bool(problem)
    assert (case.nodes[0].problem, (case.folder / ".agents").exists()) == (problem, bool(problem))


def test_what_was_fetched_is_kept_if_the_private_journal_has_been_deleted(
    case: Case, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = replace(killed(case).nodes[1], journal=".agents/2")
    case.change(replace(private(case), folder="nodes/n1", ticks=2, problem="cut"), missing)
    rmtree(case.folder / ".agents")
    rmtree(case.folder / "nodes/n2")
    before = case.files()
    code, errors = recovered(capsys, case.folder)
    assert code == 1
    assert "n2: no ticks were recorded in this time range" in errors
    assert case.files() == before
    assert [(node.ticks, node.folder) for node in case.nodes] == [(2, "nodes/n1"), (0, "")]


def test_damage_in_a_private_journal_is_a_problem_and_the_journal_is_kept(
    case: Case, capsys: pytest.CaptureFixture[str]
) -> None:
    case.change(private(case), case.complete.nodes[1])
    (file,) = journal_files(case.folder / ".agents/1")
    content = file.read_bytes()
    # The damage is among the ticks just before the run, which are kept as well.
    offset = len(content) // 16
    file.write_bytes(content[:offset] + b"\xff" * 50 + content[offset:])
    code, errors = recovered(capsys, case.folder)
    assert code == 1
    assert "n1: 1 damaged section in its journal" in errors
    assert (case.nodes[0].ticks, case.nodes[0].journal) == (TICKS, ".agents/1")
    assert (case.folder / ".agents/1").exists()


def test_what_was_fetched_is_kept_although_the_clock_was_set(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    run, begin_s = killed(case), case.complete.begin_s
    rmtree(case.folder / "nodes/n1")
    ticks = timed(busy("n1", TICKS, begin_s=float(round(begin_s))), lambda _: 60.0)
    record(case.folder / "nodes/n1", ticks)
    node = replace(run.nodes[0], clocks=(NodeClock(begin_s - 1, 0.0, 0.001),))
    steps = (ClockStep(begin_s - 0.5, 60.0),)
    write_run(case.folder, replace(case.complete, nodes=(node, case.complete.nodes[1]), clock_steps=steps))
    before = case.files()
    case.stop[0]()
    assert recovered(capsys, case.folder)[0] == 1
    assert case.files() == before
    assert (case.nodes[0].ticks, case.nodes[0].folder) == (TICKS, "nodes/n1")


@pytest.mark.parametrize("is_reachable", [True, False])
def test_what_was_fetched_before_the_runs_file_could_be_written_is_used(
    is_reachable: bool, case: Case, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = case.complete.nodes
    case.change(replace(killed(case).nodes[0], clocks=one.clocks), two)
    before = case.files()
    if not is_reachable:
        case.stop[0]()
    code, errors = recovered(capsys, case.folder)
    assert code == (0 if is_reachable else 1), errors
    assert (case.files() == before) == (not is_reachable)
    assert case.files().keys() == before.keys()
    node = case.nodes[0]
    assert (node.ticks, node.folder, bool(node.problem)) == (TICKS, "nodes/n1", not is_reachable)


def test_a_run_that_is_being_recorded_is_not_changed(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    write_run(case.folder, killed(case))
    before = case.files()
    with recording(case.folder):
        code, errors = recovered(capsys, case.folder)
    assert (code, errors) == (1, f"casstat: {case.folder}: another process is recording this run\n")
    assert case.files() == before
    assert read_run(case.folder) == killed(case)


def test_a_run_that_its_recorder_has_just_completed_is_not_reset_to_an_earlier_state(
    case: Case, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recorder writes the run's file and releases the lock while the recovery starts."""
    complete = case.complete
    write_run(case.folder, killed(case))

    @contextmanager
    def last_moment(folder: Path) -> Iterator[None]:
        write_run(folder, complete)
        yield

    monkeypatch.setattr("cli.run_folder.recording", last_moment)
    assert recovered(capsys, case.folder)[0] == 0
    assert read_run(case.folder) == complete


def test_a_directory_that_is_not_a_run_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert recovered(capsys, tmp_path) == (1, f"casstat: {tmp_path}: not a run directory\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("address", ["::x::", f"http://{HOST}:1\x1b[2J", "http://a:b@h"])
def test_an_invalid_address_in_the_runs_file_is_a_one_line_error(
    address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    node = RunNode("n1", address, clocks=(NodeClock(1000.0, 0.0, 0.0),), problem="cut")
    write_run(tmp_path, Run("r", 1000.0, 1060.0, "1", nodes=(node,)))
    code, errors = recovered(capsys, tmp_path)
    assert code == 1
    assert errors.startswith(f"casstat: {tmp_path / run_file.FILE}: ")
    assert errors.count("\n") == 1


def test_a_summary_is_written_for_the_recovered_run(case: Case, capsys: pytest.CaptureFixture[str]) -> None:
    case.change(killed(case).nodes[0], case.complete.nodes[1])
    rmtree(case.folder / "nodes/n1")
    code, errors = recovered(capsys, case.folder)
    assert (code, errors.splitlines()[-1]) == (0, str(case.folder))
    (summary,) = json.loads((case.folder / "summary.json").read_text())
    assert summary["values"]["nodes"] == 2
    assert (case.folder / "merged/rows.tsv").exists()

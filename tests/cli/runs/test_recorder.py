"""The times of a run."""

import fcntl
import os
import ssl
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from cli.record.command.command_runner import CommandRunner
from cli.record.command.output_observers import OutputLog, OutputObserver
from cli.record.command.supervised_command import CommandResult, TimeLimit
from cli.record.recorder import Recorder
from cli.runs.agent_clients import AgentClients
from collector.agents.fetching import FetchRange
from collector.http.access import Access
from collector.redaction.redactor import Redactor
from collector.runs.run import ClientHost, NodeClock, Run
from collector.runs.run_file import read_run
from tests.output_copy import OutputCopy
from tests.waiting import eventually

# The pipe is large enough for all output, so the command can end before most of it is read.
SCRIPT = f"import fcntl, os; fcntl.fcntl(1, {fcntl.F_SETPIPE_SZ}, 1 << 20); print(os.getppid(), flush=True)"
COMMAND = (sys.executable, "-c", f"{SCRIPT}; os.write(1, b'x' * 900_000)")


class SlowReader(OutputObserver):
    """Continues reading only after the supervisor has reported the command's end; notes when it last read."""

    def __init__(self) -> None:
        self.read_s = 0.0

    def before_output(self, data: bytes, _stream: int) -> None:
        if not self.read_s:
            supervisor = psutil.Process(int(data.split()[0]))
            eventually(lambda: supervisor.status() == psutil.STATUS_ZOMBIE)
        self.read_s = time.time()


class ThisHost:
    """The machine of the test; it is not sampled. After the run, it is `hosts`."""

    def __init__(self, *hosts: ClientHost) -> None:
        self.hosts = hosts

    def begin(self, now_s: float) -> float:
        return now_s

    def run(self, log: OutputLog, observer: OutputObserver, limit: TimeLimit) -> CommandResult:
        return CommandRunner(COMMAND, log, os.environ, observer, limit).run()

    def entries(self) -> tuple[ClientHost, ...]:
        return ()

    def stop(self) -> None:
        """Do nothing, because nothing was started."""

    def fetch(self, _wanted: FetchRange, _progress: Callable[[int], None]) -> tuple[ClientHost, ...]:
        return self.hosts


@pytest.mark.usefixtures("capfdbinary")
def test_the_measured_phase_ends_with_the_command_however_slow_the_reader_of_its_output_is(tmp_path: Path) -> None:
    reader, host = SlowReader(), ThisHost()
    clients = AgentClients(Access(), ssl.create_default_context())
    recorder = Recorder(Run("load", 0.0, None, "1.0"), (), clients, tmp_path, host, Redactor())
    assert recorder.run(COMMAND, lambda: host.run(OutputCopy(), reader, TimeLimit()), cool_down_s=0.0) == CommandResult(
        0
    )
    run = read_run(tmp_path)
    main, cool_down = run.phases
    assert run.command is not None
    assert run.command.end_s == main.end_s == cool_down.begin_s <= reader.read_s <= cool_down.end_s


def test_a_client_host_whose_clock_was_set_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    clocks = (NodeClock(1.0, 0.0, 0.001), NodeClock(9.0, -60.0, 0.001))
    hosts = [ClientHost(f"gen{number}", "ssh://gen", clocks=clocks[:number], interval_s=1.0) for number in (1, 2)]
    clients = AgentClients(Access(), ssl.create_default_context())
    Recorder(Run("load", 0.0, 9.0, "1.0"), (), clients, tmp_path, ThisHost(*hosts), Redactor()).fetch()
    assert capsys.readouterr().err == "casstat: gen2: its clock changed by -60.00 s during the run\n"

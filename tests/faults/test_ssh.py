"""`casstat record ssh://HOST`, with a real sshd."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from uuid import uuid4

import psutil
import pytest

from cli.main import main
from cli.parameters.parameter_types import parse_ssh_address
from cli.record.ssh.remote_spool import HEARTBEAT, variables_line
from cli.record.ssh.ssh_agent import SshAgent
from collector.agents.agent_client import AgentRuns
from collector.runs.run import RunNode
from collector.runs.run_file import read_run, write_run
from tests.faults.fake_jolokia import FakeJolokia
from tests.faults.forwarder import Forwarder
from tests.faults.recorders import COMPLETE_RUN, names_in, processes_of, recorded, until_ticks
from tests.faults.ssh_server import HOST, SshServer, ssh_server
from tests.waiting import eventually

LEASE_S = 3.0
UNREACHABLE = f"ssh://{HOST}:1"


@pytest.fixture
def server(fake: FakeJolokia, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SshServer]:
    fake.node.do_reads(100)
    with ssh_server(tmp_path / "ssh", environ_for(fake)) as running:
        monkeypatch.setenv("PATH", running.path)
        yield running


def environ_for(fake: FakeJolokia) -> dict[str, str]:
    return {"CASSTAT_JOLOKIA": fake.url, "CASSTAT_SOURCE": "jolokia"}


@pytest.fixture
def impatient(server: SshServer) -> SshServer:
    """A server on which agents exit after a few seconds without heartbeats."""
    server.configure({**server.environ, "CASSTAT_SPOOL_LEASE": str(LEASE_S)})
    server.restart()
    return server


@pytest.fixture
def spool(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The spool that this process will create on the remote host."""
    name = uuid4().hex
    monkeypatch.setattr("cli.record.ssh.ssh_agent.secrets.token_hex", lambda _: name)
    return Path(f"/tmp/casstat-{name}")  # noqa: S108 - the directory that casstat uses


@contextmanager
def closing_forwarder(fake: FakeJolokia) -> Iterator[Forwarder]:
    """Forward connections to a fake Jolokia for the duration of the block."""
    forwarder = Forwarder(fake.port)
    try:
        yield forwarder
    finally:
        forwarder.stop()


def node_of(folder: Path, server: SshServer) -> RunNode:
    """Return the run's node whose address is the URL of `server`."""
    (node,) = (node for node in read_run(folder).nodes if node.address == server.url)
    return node


def test_a_node_is_recorded_in_a_private_spool_that_is_deleted_after_the_fetch(
    fake: FakeJolokia, server: SshServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    # A shell's start-up files may print something, and the remote version may differ.
    casstat = Path(sys.executable).with_name("casstat")
    other_version = """sed -u 's/"casstat": "[^"]*"/"casstat": "9.0"/'"""
    with_program(server, tmp_path, f'echo Welcome; {casstat} "$@" | {other_version}')
    server.restart()
    script = (
        "import json, os; from pathlib import Path;"
        "node, = json.loads(Path(os.environ['CASSTAT_RUN_DIR'], 'run.json').read_text())['nodes'];"
        "spool = Path(node['spool']);"
        "print(spool, oct(spool.stat().st_mode), oct((spool / 'socket').stat().st_mode), len(list(spool.iterdir())))"
    )
    command = ("sh", "-c", f'{until_ticks(3, fake, tmp_path)}; exec "$@"', "sh", sys.executable, "-c", script)
    code, out, errors = recorded(capfd, server.url, "-o", folder, "--", *command)
    assert code == 0, errors
    versions = f"casstat 9.0 on the remote host, casstat {version('casstat')} on this host"
    assert f"casstat: {server.url}: {versions}\n" in errors
    spool, directory_mode, socket_mode, _ = out.split()
    assert (directory_mode, socket_mode) == ("0o40700", "0o140600")
    (node,) = read_run(folder).nodes
    assert (node.address, node.problem, node.spool) == (server.url, "", "")
    assert node.folder.startswith("nodes/")
    assert node.ticks >= 2
    assert len(node.clocks) == 2
    assert names_in(folder) == COMPLETE_RUN
    assert not Path(spool).exists()
    assert not processes_of(spool)


def test_credentials_for_jolokia_are_sent_to_the_remote_agent_but_not_in_arguments(
    fake: FakeJolokia,
    server: SshServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    secret, folder = "hunter2", tmp_path / "run"
    with closing_forwarder(fake) as forwarder:
        server.configure({**server.environ, "CASSTAT_JOLOKIA": forwarder.url})
        server.restart()
        monkeypatch.setenv("CASSTAT_JOLOKIA_PASSWORD", secret)
        script = (
            "import os; from pathlib import Path;"
            "lines = [path.read_bytes() for path in Path('/proc').glob('[0-9]*/cmdline')];"
            "print(len(lines) > 5, any(os.environ['CASSTAT_JOLOKIA_PASSWORD'].encode() in line for line in lines))"
        )
        options = ("--jolokia-user", "me", "--jolokia-ca", tmp_path / "ca.pem", "-o", folder)
        command = ("sh", "-c", f'{until_ticks(3, fake, tmp_path)}; exec "$@"', "sh", sys.executable, "-c", script)
        code, out, errors = recorded(capfd, server.url, *options, "--", *command)
        token = b64encode(f"me:{secret}".encode())
        requests = forwarder.received.count(b"POST ")
        assert forwarder.received.count(b"Authorization: Basic " + token) == requests > 0
    assert code == 0, errors
    assert out == "True False\n"
    assert "casstat: --jolokia-ca does not apply to ssh:// nodes\n" in errors
    (node,) = read_run(folder).nodes
    assert (node.problem, node.spool) == ("", "")
    assert secret not in errors
    assert not any(secret.encode() in path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_a_spool_in_which_no_run_begins_is_deleted(fake: FakeJolokia, spool: Path) -> None:
    environ = {**os.environ, **environ_for(fake), "CASSTAT_SPOOL_LEASE": "1"}
    command = [sys.executable, "-m", "cli", "spool", str(spool)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=environ) as process:
        assert process.stdin is not None
        process.stdin.write(variables_line({}))
        process.stdin.flush()
        eventually(lambda: any((spool / "journal").glob("*.jsonl.zst")))
    eventually(lambda: not spool.exists())
    eventually(lambda: not processes_of(str(spool)))


@pytest.mark.parametrize(
    "line",
    [b"", b"\n", b"[]\n", b'{"CASSTAT_JOLOKIA_USER": 1}\n', b'{"CASSTAT_JOLOKIA_USER": "a\\u0000b"}\n', b"x" * 99999],
)
def test_a_client_that_does_not_begin_with_variables_is_ignored(spool: Path, line: bytes) -> None:
    process = subprocess.run(
        [sys.executable, "-m", "cli", "spool", spool], input=line, capture_output=True, check=True, timeout=60
    )
    assert process.stdout.count(b"\n") == 1
    assert not spool.exists()


def test_a_broken_connection_is_restored_without_a_gap(
    fake: FakeJolokia, server: SshServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    ready, end, ended = (tmp_path / name for name in ("ready", "end", "ended"))

    def interrupt() -> None:
        eventually(ready.exists, 120)
        server.stop()
        ticks = fake.ticks
        eventually(lambda: fake.ticks >= ticks + 3)
        # The command ends while there is no connection.
        end.touch()
        eventually(ended.exists)
        server.start()

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    wait = f"until [ -e {end} ]; do sleep 0.02; done"
    command = ("sh", "-c", f"{until_ticks(2, fake, tmp_path)}; touch {ready}; {wait}; touch {ended}")
    code, _, errors = recorded(capfd, server.url, "-o", folder, "--", *command)
    interrupting.join()
    assert code == 0, errors
    assert f"{server.url}: connection lost: " in errors
    assert f"{server.url}: connected again\n" in errors
    (node,) = read_run(folder).nodes
    assert (node.problem, node.spool) == ("", "")
    assert node.ticks >= 2 + 3


class Recorder:
    """A recorder process whose command is running; one of its two nodes cannot be reached."""

    def __init__(self, server: SshServer, folder: Path, sockets: str) -> None:
        command = ("sh", "-c", "echo up; exec sleep 60")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "cli", "record", UNREACHABLE, server.url, "-o", folder, "--", *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "TMPDIR": sockets},
            text=True,
        )
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "up\n"


def test_an_agent_whose_client_is_silent_ends_and_its_recording_can_be_recovered(
    fake: FakeJolokia, impatient: SshServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    with tempfile.TemporaryDirectory() as sockets, Recorder(impatient, folder, sockets).process as process:
        spool = node_of(folder, impatient).spool
        ticks = fake.ticks
        eventually(lambda: fake.ticks >= ticks + 3)
        # The connection stays open, but nothing is sent.
        clients = [child for child in psutil.Process(process.pid).children() if child.name() == "ssh"]
        for client in clients:
            client.suspend()
        agents = [found for found in processes_of(spool) if found not in clients]
        assert len(agents) >= 3
        psutil.wait_procs(agents, LEASE_S + 60)
        assert not any(agent.is_running() for agent in agents)
        process.kill()
        for client in clients:
            client.resume()
    eventually(lambda: not processes_of(spool))
    assert Path(spool).is_dir()
    assert main(["fetch", "--recover", str(folder)]) == 1
    errors = capfd.readouterr().err
    assert errors.endswith("casstat: 1 of 2 nodes not fetched completely\n")
    assert "Traceback" not in errors
    problems = {node.name: node.problem for node in read_run(folder).nodes}
    assert problems[UNREACHABLE] == f"{UNREACHABLE}: connect to host {HOST} port 1: Connection refused"
    node = node_of(folder, impatient)
    assert (node.problem, node.spool) == ("", "")
    assert node.ticks >= 2
    assert not Path(spool).exists()
    assert not processes_of(spool)
    # A spool that has been deleted is not created again.
    write_run(folder, replace(read_run(folder), nodes=(replace(node, ticks=0, folder="", spool=spool),)))
    for _ in range(2):
        assert main(["fetch", "--recover", str(folder)]) == 1
        errors = capfd.readouterr().err
        assert f"{impatient.url}: {spool} no longer exists on the remote host" in errors
        assert "the recording is still in" not in errors
        assert node_of(folder, impatient).spool == ""
        assert not Path(spool).exists()


def test_a_recording_that_is_not_fetched_because_of_ctrl_c_is_reported_and_can_be_recovered(
    fake: FakeJolokia,
    server: SshServer,
    spool: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = tmp_path / "run"
    end = AgentRuns.end

    def interrupted(runs: AgentRuns) -> None:
        end(runs)
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(AgentRuns, "end", interrupted)
    code, _, errors = recorded(capfd, server.url, "-o", folder, "--", "sh", "-c", until_ticks(2, fake, tmp_path))
    assert code == 130
    # The first note is that the cluster has another node.
    assert errors.splitlines()[1:] == [
        f"casstat: {server.url}: the recording is still in {spool} on the remote host",
        f"casstat: the run is incomplete (hint: run 'casstat fetch --recover {folder}')",
    ]
    assert spool.is_dir()
    assert main(["fetch", "--recover", str(folder)]) == 0
    node = node_of(folder, server)
    assert (node.problem, node.spool) == ("", "")
    assert node.ticks
    assert not spool.exists()
    assert not processes_of(str(spool))


def test_the_runs_file_names_a_spool_until_a_recovery_has_deleted_it(
    fake: FakeJolokia,
    server: SshServer,
    spool: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr("cli.record.ssh.ssh_agent.DELETE_S", 0.5)
        patch.setattr("cli.record.ssh.remote_spool.DELETE", HEARTBEAT)
        code, _, errors = recorded(capfd, server.url, "-o", folder, "--", "sh", "-c", until_ticks(2, fake, tmp_path))
    assert code == 0
    assert f"{server.url}: cannot delete {spool} (hint: run 'ssh " in errors
    node = node_of(folder, server)
    assert (node.problem, node.spool) == ("", str(spool))
    assert main(["fetch", "--recover", str(folder)]) == 0
    assert node_of(folder, server) == replace(node, spool="")
    assert not spool.exists()
    assert not processes_of(str(spool))


def test_ctrl_c_ends_the_wait_for_a_connection_and_leaves_no_local_files(
    impatient: SshServer, spool: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes: list[str] = []

    def interrupting(text: str) -> None:
        notes.append(text)
        if "waiting" in text:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("cli.record.ssh.ssh_agent.note", interrupting)
    monkeypatch.setattr("cli.record.ssh.ssh_agent.SILENT_S", 0.0)
    agent = SshAgent(parse_ssh_address(impatient.url), tmp_path / "run")
    sockets = Path(agent.address().socket).parent
    impatient.stop()
    with pytest.raises(KeyboardInterrupt):
        agent.stop()
    assert not sockets.exists()
    assert f"{impatient.url}: waiting for a connection in order to delete {spool}" in notes
    assert notes[-1].startswith(f"{impatient.url}: cannot delete {spool} (hint: run 'ssh ")
    # The agent's thread is still running, and deletes the spool when it has reconnected.
    impatient.start()
    eventually(lambda: not spool.exists())


def refusing_key(server: SshServer, _: Path) -> None:
    server.authorized_keys.write_text("")


def with_unknown_host_key(server: SshServer, _: Path) -> None:
    server.known_hosts.write_text("")


def without_casstat(server: SshServer, _: Path) -> None:
    server.configure({"PATH": "/usr/bin:/bin"})


def with_old_casstat(server: SshServer, folder: Path) -> None:
    with_program(server, folder, "echo \"Error: unknown command 'spool'\" >&2; exit 2")


def with_other_version(server: SshServer, folder: Path) -> None:
    hello = json.dumps({"casstat": "9.0", "protocol": 1, "journal_format": 99})
    with_program(server, folder, f"echo 'Welcome!'; echo '{hello}'; cat >/dev/null")


def with_disabled_account(server: SshServer, folder: Path) -> None:
    with_program(server, folder, "echo 'This account is currently not available.'; exit 1")


def with_program(server: SshServer, folder: Path, script: str) -> None:
    program = folder / "programs" / "casstat"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    server.configure({**server.environ, "PATH": f"{program.parent}:/usr/bin:/bin"})


def without_forwarding(server: SshServer, _: Path) -> None:
    server.configure(server.environ, "AllowStreamLocalForwarding no")


@pytest.mark.parametrize(
    ("break_server", "message"),
    [
        (refusing_key, "Permission denied (publickey). (hint: set up a key so that ssh needs no prompt)"),
        (with_unknown_host_key, "Host key verification failed. (hint: run 'ssh "),
        (without_casstat, "casstat is not installed on the remote host, or not in its PATH (hint: make sure 'ssh "),
        (with_old_casstat, "casstat on the remote host does not support ssh:// (hint: install version "),
        (with_other_version, "casstat 9.0 on the remote host does not work with casstat "),
        (with_disabled_account, "casstat on the remote host does not answer: This account is currently not available."),
        (without_forwarding, "ssh cannot forward a socket: "),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_host_that_cannot_be_used_is_a_one_line_error(
    break_server: Callable[[SshServer, Path], None],
    message: str,
    server: SshServer,
    spool: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    break_server(server, tmp_path)
    server.restart()
    code, out, errors = recorded(capfd, server.url, "-o", tmp_path / "run", "--", "echo", "run")
    assert (code, out) == (125, "")
    assert errors.startswith(f"casstat: {server.url}: ")
    assert message in errors
    assert errors.count("\n") == 1
    assert not (tmp_path / "run").exists()
    assert not spool.exists()


def test_a_run_that_does_not_begin_leaves_nothing_behind(
    server: SshServer, spool: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    arguments = ("--require-all", server.url, f"{HOST}:1", "-o", tmp_path / "run", "--", "echo", "run")
    code, out, errors = recorded(capfd, *arguments)
    assert (code, out) == (125, "")
    assert errors.endswith("casstat: 1 of 2 nodes cannot be recorded\n")
    assert not (tmp_path / "run").exists()
    assert not spool.exists()
    assert not processes_of(str(spool))


def test_a_missing_server_or_a_missing_ssh_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    code, _, errors = recorded(capfd, UNREACHABLE, "-o", tmp_path / "run", "--", "true")
    assert code == 125
    assert errors == f"casstat: {UNREACHABLE}: connect to host {HOST} port 1: Connection refused\n"
    monkeypatch.setenv("PATH", str(tmp_path))
    code, _, errors = recorded(capfd, UNREACHABLE, "-o", tmp_path / "run", "--", "/bin/true")
    assert code == 125
    assert "ssh: command not found (hint: install OpenSSH's client)\n" in errors


def test_a_host_name_is_never_taken_for_an_option_of_ssh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for address in ("ssh://-oProxyCommand=touch x", "ssh://-oProxyCommand=touch", "ssh://a@-F/dev/null"):
        code, _, errors = recorded(capfd, address, "-o", "run", "--", "true")
        assert code == 125
        assert "is not a valid address" in errors
    assert not list(tmp_path.iterdir())

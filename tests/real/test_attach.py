"""`casstat attach` on a node that was started without Jolokia."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import pytest

from cli.setup.demo.demo_node import Node
from cli.setup.demo.java_runtime import find_java
from collector.node.jolokia.client import Jolokia, JolokiaAccess, JolokiaError
from collector.node.jolokia.mbean_source import read_facts
from tests.real.agents import ADDRESS, VERSION, BareNode, attached, jar_of, pid_of

pytestmark = pytest.mark.beside

TIMEOUT_S = 60.0
PORT = 28778
SECRET = "hünter,2="  # noqa: S105 - not a real password


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with closing(BareNode(tmp_path_factory.mktemp("node-attach"))) as bare:
        yield bare.for_jolokia("2.3.0")


def attach(*arguments: str | Path) -> tuple[int, str, str]:
    """Run `casstat attach`; return its exit code, stdout and stderr."""
    command: list[str | Path] = [sys.executable, "-m", "cli", "attach", "--listen", f"127.0.0.1:{PORT}", *arguments]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert "Traceback" not in result.stderr
    assert SECRET not in result.stdout + result.stderr
    assert (result.stdout + result.stderr).count("\n") == 1
    return result.returncode, result.stdout, result.stderr


def folders(pid: int) -> set[str]:
    """Return the names of the directories that `casstat attach` left in the process's /tmp."""
    return {path.name for path in Path(f"/proc/{pid}/root/tmp").glob(f"casstat-{16 * '[0-9a-f]'}")}


def test_attach_and_detach_leave_nothing_behind(node: Node) -> None:
    jar, pid, before = jar_of("2.3.0"), pid_of(node), folders(pid_of(node))
    url = f"http://127.0.0.1:{PORT}/jolokia"
    message = f"{url} serves Cassandra {VERSION} at {ADDRESS} (hint: run 'casstat --jolokia {url}')\n"
    assert attach("--jar", jar, str(pid)) == (0, f"attached Jolokia to process {pid}: {message}", "")
    assert attach("--jar", jar, str(pid)) == (0, f"Jolokia is already attached to process {pid}: {message}", "")
    with closing(Jolokia(url)) as jolokia:
        assert read_facts(jolokia, TIMEOUT_S).address == ADDRESS
    assert attach("--jar", jar, str(pid), "--detach") == (0, f"detached Jolokia from process {pid}\n", "")
    assert attach("--jar", jar, str(pid), "--detach") == (0, f"Jolokia is not attached to process {pid}\n", "")
    with pytest.raises(JolokiaError, match="Connection refused"):
        read_facts(Jolokia(url), TIMEOUT_S)
    assert folders(pid) == before


def test_the_default_command_reads_an_attached_node(node: Node) -> None:
    jar, pid = jar_of("2.3.0"), str(pid_of(node))
    _, message, _ = attach("--jar", jar, pid)
    _, _, command = message.strip().removesuffix("')").rpartition("run 'casstat ")
    try:
        line = [sys.executable, "-m", "cli", "1", "2", "-s", "--format", "json", *command.split()]
        result = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
    finally:
        attach("--jar", jar, pid, "--detach")
    assert result.returncode == 0, result.stderr
    assert result.stdout.count(f'"node": "{ADDRESS}"') == 2, result.stdout + result.stderr


def test_an_attached_node_is_read_only(node: Node) -> None:
    jar, pid = jar_of("2.3.0"), str(pid_of(node))
    attach("--jar", jar, pid)
    target = '"target": {"url": "service:jmx:rmi:///jndi/rmi://127.0.0.1:1/jmxrmi"}'
    requests = [
        '{"type": "exec", "mbean": "java.lang:type=Memory", "operation": "gc"}',
        '{"type": "write", "mbean": "java.lang:type=Memory", "attribute": "Verbose", "value": true}',
        '{"type": "list"}',
        '{"type": "exec", "mbean": "org.apache.cassandra.metrics:type=CommitLog,name=WaitingOnCommit",'
        ' "operation": "values()"}',
        # The agent does not act as a proxy: it ignores the target and reads its own JVM.
        '{"type": "read", "mbean": "java.lang:type=Runtime", "attribute": "Name", ' + target + "}",
    ]
    try:
        with closing(Jolokia(f"http://127.0.0.1:{PORT}/jolokia")) as jolokia:
            statuses = [answer["status"] for answer in jolokia.post(requests, TIMEOUT_S)]
    finally:
        attach("--jar", jar, pid, "--detach")
    assert statuses == [403, 403, 403, 200, 200]


def test_credentials_are_required_and_the_password_is_on_no_command_line(node: Node, tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text(SECRET)
    secret.chmod(0o600)
    jar, pid = jar_of("2.3.0"), str(pid_of(node))
    code, message, _ = attach(
        "--jar", jar, pid, "--listen", f"0.0.0.0:{PORT}", "--user", "me", "--password-file", secret
    )
    url = f"http://127.0.0.1:{PORT}/jolokia"
    try:
        assert code == 0
        assert message.endswith(f"run 'casstat --jolokia {url} --jolokia-user me --jolokia-password-file {secret}')\n")
        with pytest.raises(JolokiaError, match="HTTP 401"):
            read_facts(Jolokia(url), TIMEOUT_S)
        with closing(Jolokia(url, JolokiaAccess("me", SECRET))) as jolokia:
            assert read_facts(jolokia, TIMEOUT_S).address == ADDRESS
        assert "HTTP 401" in attach("--jar", jar, pid)[1]
    finally:
        attach("--jar", jar, pid, "--detach")


def test_an_agent_attached_by_other_means_is_reported(node: Node) -> None:
    jar, pid = jar_of("2.3.0"), str(pid_of(node))
    with attached(node, jar) as url:
        code, message, _ = attach("--jar", jar, pid)
        assert (code, message.split(" serves")[0]) == (0, f"Jolokia is already attached to process {pid}: {url}")


def test_a_port_in_use_is_an_error(node: Node) -> None:
    with socket.create_server(("127.0.0.1", PORT)):
        code, _, errors = attach("--jar", jar_of("2.3.0"), str(pid_of(node)))
    assert code == 1
    assert f"127.0.0.1:{PORT}: Address already in use (hint: choose another address with --listen)" in errors


def test_a_process_other_than_cassandra_is_refused() -> None:
    code, _, errors = attach("--jar", jar_of("2.3.0"), str(os.getpid()))
    assert code == 1
    assert "Cassandra" in errors


# This program looks like Cassandra to `casstat attach`; the tests that use it need no real node.
IDLE = """public class Idle {
    public static void main(String[] arguments) throws Exception {
        System.out.println("up");
        Thread.sleep(600_000);
    }
}"""
AS_ROOT = os.geteuid() == 0
OWN_FILES = ["unshare", "--mount", *([] if AS_ROOT else ["--map-root-user"])]
OWN_TMP = ["sh", "-c", 'mount -t tmpfs none /tmp && chmod 1777 /tmp && exec "$@"', "sh"]
AS_NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]


@dataclass(frozen=True)
class Idle:
    """An idle JVM that looks like Cassandra; every user can read its class and Jolokia's JAR file."""

    command: tuple[str, ...]
    jar: Path

    @contextmanager
    def running(self, *before: str, switches: Sequence[str] = ()) -> Iterator[int]:
        """Run the JVM with the command prefix `before`, and yield its process id."""
        java, *rest = self.command
        with subprocess.Popen([*before, java, *switches, *rest], stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                assert process.stdout.readline() == "up\n"
                inner = psutil.Process(process.pid).children()
                yield inner[0].pid if inner else process.pid
            finally:
                for child in psutil.Process(process.pid).children():
                    child.kill()
                process.kill()


@pytest.fixture(scope="module")
def idle() -> Iterator[Idle]:
    java = find_java(os.environ)
    with TemporaryDirectory(dir="/var/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "Idle.java").write_text(IDLE)
        subprocess.run([java.with_name("javac"), folder / "Idle.java"], check=True, timeout=60)
        command = (str(java), "-cp", name, "Idle", "org.apache.cassandra.service.CassandraDaemon")
        yield Idle(command, Path(shutil.copy(jar_of("2.3.0"), folder)))


def test_a_jvm_with_attaching_disabled_is_an_error(idle: Idle) -> None:
    with idle.running(switches=["-XX:+DisableAttachMechanism"]) as pid:
        code, _, errors = attach("--jar", idle.jar, str(pid))
    assert code == 1
    assert "-XX:+DisableAttachMechanism" in errors


def test_a_jvm_in_another_network_namespace_is_an_error(idle: Idle) -> None:
    with idle.running(*OWN_FILES, "--net") as pid:
        code, _, errors = attach("--jar", idle.jar, str(pid))
    assert code == 1
    assert "a separate network namespace" in errors


NAMESPACES: dict[str, list[str]] = {
    "its own pids": [*OWN_FILES, "--pid", "--fork", "--mount-proc"],
    "its own pids and files": [*OWN_FILES, "--pid", "--fork", "--mount-proc", *OWN_TMP],
}
if AS_ROOT:
    # Only root can start these JVMs and enter their namespaces; tests/cli covers the messages for other users.
    NAMESPACES |= {"its own user": AS_NOBODY, "its own files and user": [*OWN_FILES, *OWN_TMP, *AS_NOBODY]}


@pytest.mark.parametrize("name", NAMESPACES)
def test_jolokia_is_attached_to_a_jvm_in_other_namespaces(idle: Idle, name: str) -> None:
    with idle.running(*NAMESPACES[name]) as pid:
        before = folders(pid)
        assert attach("--jar", idle.jar, str(pid))[1].startswith(
            f"attached Jolokia to process {pid}: http://127.0.0.1:{PORT}"
        )
        assert folders(pid) == before
        assert attach("--jar", idle.jar, str(pid), "--detach")[1] == f"detached Jolokia from process {pid}\n"


def test_a_jvm_that_cannot_read_the_jar_is_an_error(idle: Idle) -> None:
    with idle.running(*OWN_FILES, *OWN_TMP) as pid, TemporaryDirectory(dir="/tmp") as folder:
        code, _, errors = attach("--jar", shutil.copy(idle.jar, folder), str(pid))
    assert code == 1
    assert "cannot see" in errors

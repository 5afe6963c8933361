"""Find out who receives root's passwords beside a real node of one user and another user's imitations of it.

The node is Cassandra with Jolokia, both with passwords, and runs as the user `daemon`. The adversary, `nobody`, has
older processes with Cassandra's main class, one with a real Jolokia; listeners at the usual ports that keep what they
receive; and a nodetool that leaves a trace. Everything runs in namespaces of its own. Requires root.
"""

import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from cli.process_setup import casstat_command
from cli.setup.demo.background_process import listens
from cli.setup.demo.demo_cluster import cache_folder
from cli.setup.demo.demo_node import NATIVE_PORT, NodeSpec, command, write_configuration
from cli.setup.demo.java_runtime import fetch_cassandra, fetch_jolokia, find_java
from collector.node.jolokia.client import ORIGIN, Jolokia, JolokiaAccess, JolokiaError
from tests.faults.test_two_users import NAMESPACES
from tests.faults.two_users_stage import DAEMON, NOBODY, Stage, listener, process, raise_loopback

VERSION = "5.0.8"
OWNER = pwd.getpwnam("daemon")
PORT, JMX_PORT = 8778, 7199
START_S, LIMIT_S, POLL_S = 300, 120, 0.2
USER, JOLOKIA_SECRET, JMX_SECRET = "reader", "s3cret-of-jolokia", "s3cret-of-jmx"
JMX_OPTIONS = (
    "--add-exports=java.management/com.sun.jmx.remote.security=ALL-UNNAMED",
    "-Dcom.sun.management.jmxremote.authenticate=true",
)
SLEEP = "public class Sleep { public static void main(String[] a) throws Exception { Thread.sleep(3600000); } }\n"
LOAD_AGENT = {
    "type": "exec",
    "mbean": "com.sun.management:type=DiagnosticCommand",
    "operation": "jvmtiAgentLoad",
    "arguments": [["/nosuch.jar"]],
}


@dataclass(frozen=True)
class Check:
    """Something that must hold, and what was seen."""

    claim: str
    holds: bool
    seen: str = ""


def write_secret(path: Path, text: str, owner: int = 0) -> Path:
    path.write_text(text)
    path.chmod(0o600)
    os.chown(path, owner, -1)
    return path


def prepared(folder: Path) -> NodeSpec:
    """Return a node whose files all belong to its user; the cache belongs to root, whose folder may be closed."""
    cache = cache_folder(os.environ)
    jars, home = folder / "jars", folder / "node"
    shutil.copytree(fetch_cassandra(VERSION, cache, print), jars)
    jolokia = Path(shutil.copy(fetch_jolokia(cache, print), folder / "jolokia.jar"))
    spec = NodeSpec(VERSION, "127.0.0.1", home, find_java(os.environ, VERSION), jars, jolokia, "127.0.0.1", JMX_PORT)
    write_configuration(spec)
    write_secret(home / "jmx.password", f"{USER} {JMX_SECRET}\n")
    for path in (home, *home.rglob("*")):
        os.chown(path, OWNER.pw_uid, OWNER.pw_gid)
    return spec


@contextmanager
def running(spec: NodeSpec) -> Iterator[None]:
    """Run the node as its user until the block ends."""
    words = []
    for word in command(spec):
        is_agent = word.startswith(f"-javaagent:{spec.jolokia}=")
        words.append(f"{word},user={USER},password={JOLOKIA_SECRET}" if is_agent else word)
    words[1:1] = [*JMX_OPTIONS, f"-Dcom.sun.management.jmxremote.password.file={spec.home}/jmx.password"]
    with (spec.home / "logs/stdout.log").open("wb") as log, started(words, OWNER, spec.home, log) as node:
        ends_s = time.monotonic() + START_S
        while not listens(spec.address, NATIVE_PORT):
            if node.poll() is not None or time.monotonic() > ends_s:
                raise SystemExit((spec.home / "logs/stdout.log").read_text()[-2000:])
            time.sleep(POLL_S)
        yield


@contextmanager
def started(
    words: Sequence[str], user: pwd.struct_passwd, folder: Path, log: BinaryIO | int
) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a program as a user until the block ends."""
    with subprocess.Popen(
        words,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        user=user.pw_uid,
        group=user.pw_gid,
        extra_groups=[],
    ) as program:
        try:
            yield program
        finally:
            program.kill()


@contextmanager
def adversary(stage: Stage, spec: NodeSpec) -> Iterator[None]:
    """Run nobody's imitations: a shell, and a JVM with a real Jolokia."""
    source = stage.folder / "Sleep.java"
    source.write_text(SLEEP)
    subprocess.run([spec.java.with_name("javac"), "-d", stage.folder, source], check=True)
    conf = stage.installation("imitation", user=NOBODY.pw_uid)
    options = (f"-Dcassandra.jmx.local.port={JMX_PORT}", "-cp", str(conf))
    agent = f"-javaagent:{spec.jolokia}=host=127.0.0.1,port=8780,discoveryEnabled=false"
    words = [str(spec.java), "-Xmx64m", agent, "-cp", f"{conf}:{stage.folder}", "Sleep", DAEMON]
    with (
        process("-javaagent:/x/jolokia.jar=port=8779", *options, user=NOBODY.pw_uid),
        started(words, NOBODY, Path("/"), subprocess.DEVNULL),
    ):
        while not listens("127.0.0.1", 8780):
            time.sleep(POLL_S)
        yield


def casstat(*options: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        casstat_command(*options),
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def last_row(done: "subprocess.CompletedProcess[str]") -> Mapping[str, object]:
    rows: list[Mapping[str, object]] = [json.loads(line) for line in done.stdout.splitlines()]
    return rows[-1] if rows else {}


def with_the_node(stage: Stage, jolokia: Sequence[str], jmx: Sequence[str]) -> Iterator[Check]:
    """Check what casstat does while the node runs."""
    trusted = ("--trusted-user", OWNER.pw_name, "--format", "json")
    done = casstat("1", "4", *trusted, *jolokia)
    # Idle, a new node has no client requests.
    is_read = last_row(done).get("compactions_pending") is not None
    yield Check("the node is read through Jolokia", is_read, done.stderr + done.stdout)
    yield Check("the imitations are listed", "of user nobody" in done.stderr, done.stderr)
    done = casstat("1", "2", "--format", "json", *jolokia, *jmx)
    listed = all(f"of user {name}" in done.stderr for name in (OWNER.pw_name, "nobody"))
    yield Check("without --trusted-user, the processes of both users are listed", listed, done.stderr)
    yield Check("and nothing is read", last_row(done).get("compactions_pending") is None, done.stdout)
    done = casstat("2", "12", "--source", "nodetool", *trusted, *jmx)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    yield Check(
        "the node's nodetool reads it",
        any(row["compactions_pending"] is not None for row in rows),
        done.stderr + done.stdout,
    )
    done = casstat("2", "1", "--source", "nodetool", *trusted)
    yield Check("JMX requires the password", "Authentication failed" in done.stderr, done.stderr)
    yield Check("nobody's nodetool was not run", not stage.log.exists() or not stage.log.read_text())
    done = casstat("doctor", "--trusted-user", OWNER.pw_name, *jolokia, *jmx)
    yield Check("the doctor finds a policy", "policy denies the changes" in done.stdout, done.stdout)
    yield Check("the doctor lists the imitations", "users that are not trusted: process" in done.stdout, done.stdout)
    access = JolokiaAccess(USER, JOLOKIA_SECRET)
    client = Jolokia(f"http://127.0.0.1:{PORT}/jolokia", access)
    (answer,) = client.post([json.dumps(LOAD_AGENT)], LIMIT_S)
    yield Check("the policy refuses to load a native agent", answer.get("status") == 403, str(answer)[:200])
    client.close()
    client._headers["Origin"] = ORIGIN.replace("casstat", "elsewhere")
    try:
        client.post([json.dumps({"type": "version"})], LIMIT_S)
        yield Check("the policy refuses the requests of web pages", holds=False)
    except JolokiaError as error:
        yield Check("the policy refuses the requests of web pages", "not allowed" in str(error), str(error))


def play(folder: Path) -> bool:
    """Play all scenes; print each check, and return whether all hold."""
    raise_loopback()
    stage = Stage(folder)
    spec = prepared(folder)
    secrets = (write_secret(folder / "jolokia", JOLOKIA_SECRET), write_secret(folder / "jmx", f"{USER} {JMX_SECRET}\n"))
    jolokia = ("--jolokia-user", USER, "--jolokia-password-file", str(secrets[0]))
    jmx = ("--jmx-user", USER, "--jmx-password-file", str(secrets[1]))
    checks: list[Check] = []
    with ExitStack() as stack:
        stack.enter_context(adversary(stage, spec))
        first = stack.enter_context(listener(8779))
        with running(spec):
            checks += with_the_node(stage, jolokia, jmx)
        ports = [first, *(stack.enter_context(listener(port)) for port in (PORT, JMX_PORT))]
        done = casstat("1", "2", *jolokia, *jmx)
        checks.append(Check("with the node down, its ports are not trusted", "not trusted" in done.stderr, done.stderr))
        received = b"".join(opened.received for opened in ports)
        checks.append(Check("nobody received a byte", received == b"", repr(received[:200])))
        done = casstat("1", "2", "--jolokia", "http://127.0.0.1:8779/jolokia", *jolokia)
        checks.append(Check("a named address receives the password", b"Authorization: Basic" in first.received))
    for check in checks:
        print(f"{'ok  ' if check.holds else 'FAIL'}  {check.claim}{'' if check.holds else f': {check.seen}'}")
    return all(check.holds for check in checks)


def main() -> int:
    """Start the scenes in namespaces of their own."""
    if os.geteuid() != 0:
        raise SystemExit("acceptance.two_users: requires root, to run processes of several users")
    if "--inside" in sys.argv:
        with tempfile.TemporaryDirectory(prefix="casstat-two-users-") as folder:
            return 0 if play(Path(folder)) else 1
    words = [*NAMESPACES, sys.executable, "-m", "acceptance.two_users", "--inside"]
    return subprocess.run(words, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())

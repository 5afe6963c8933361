"""The Cassandra process to attach to: selection, permissions, and the java executable to attach with."""

import contextlib
import os
import pwd
import selectors
import shlex
import shutil
import signal
import subprocess
import time
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from cli.errors import CasstatError
from cli.setup.demo.java_runtime import javas
from collector.file_access import file_errors
from collector.node.host.cassandra_processes import LocalNode
from collector.node.host.discovery import has_separate_network
from collector.printable import printable

MAIN = "org.jolokia.jvmagent.client.AgentLauncher"
TIMEOUT_S = 30.0
MAX_OUTPUT_BYTES = 1 << 16
CHUNK_BYTES = 4096
# Options for a small heap and a quick start, because the launcher does little work.
SMALL = ("-Xmx64m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
ATTACH, SERVER = "jdk.attach", "jdk.httpserver"
ENABLED, DISABLED = "-XX:-DisableAttachMechanism", "-XX:+DisableAttachMechanism"
AT_START = "load Jolokia at start-up with -javaagent"
PROC = Path("/proc")


def as_user(user: str, command: str, root: bool = False) -> str:
    """Return a shell command line that runs `command` as a user (name or UID); `root` means that the caller is root."""
    if not user.isdigit():
        return f"runuser -u {shlex.quote(user)} -- {command}" if root else f"sudo -u {shlex.quote(user)} {command}"
    # runuser accepts only names.
    return f"setpriv --reuid={user} --clear-groups -- {command}" if root else rf"sudo -u \#{user} {command}"


def callers(environ: Mapping[str, str]) -> set[int]:
    """Return the UIDs of those who can do all that this process can: root, its user, and who started it with sudo."""
    caller = environ.get("SUDO_UID", "")
    return {0, os.geteuid(), *([int(caller)] if caller.isdecimal() else ())}


@dataclass(frozen=True)
class Done:
    """The result of running a program: its exit code (None if it was killed at the deadline) and its output."""

    code: int | None
    text: str

    @property
    def gist(self) -> str:
        """The output as one line of at most 300 characters."""
        return printable(" ".join(self.text.split()))[:300]


@dataclass(frozen=True)
class Runner:
    """Runs programs as a given user and group, or inside the target process's mount namespace.

    owner     user and group, or None for those of this process.
    inside    command prefix that enters the target process's mount namespace.
    """

    owner: tuple[int, int] | None = None
    inside: tuple[str, ...] = ()

    def run(self, command: Sequence[str | Path], environ: Mapping[str, str], timeout_s: float = TIMEOUT_S) -> Done:
        """Run a command until it ends or is killed at the deadline. Raises CasstatError if it cannot be started."""
        user, group = self.owner or (None, None)
        with file_errors(command[0], CasstatError):
            process = subprocess.Popen(
                [*self.inside, *command],
                cwd="/",
                # Leave out other variables, such as Java options, which could change the behaviour and output.
                env={"PATH": environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8"},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                user=user,
                group=group,
                extra_groups=None if self.owner is None else [],
                start_new_session=True,
            )
        with process:
            try:
                output = _read(process, time.monotonic() + timeout_s)
                ended = process.poll() is not None
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
        return Done(process.returncode if ended else None, output.decode(errors="replace"))

    def modules(self, java: Path, environ: Mapping[str, str]) -> frozenset[str]:
        """Return a Java installation's module names, or an empty set for Java 8 or a `java` that does not run."""
        try:
            done = self.run([java, "--list-modules"], environ)
        except CasstatError:
            return frozenset()
        return frozenset(line.partition("@")[0] for line in done.text.splitlines()) if done.code == 0 else frozenset()


def _read(process: "subprocess.Popen[bytes]", deadline_s: float) -> bytes:
    """Read the output until the process exits or the deadline passes; return at most MAX_OUTPUT_BYTES bytes."""
    output = b""
    stream = process.stdout
    if stream is None:
        return output
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        while (left_s := deadline_s - time.monotonic()) > 0 and selector.select(left_s):
            chunk = os.read(stream.fileno(), CHUNK_BYTES)
            if not chunk:
                break
            output = (output + chunk)[:MAX_OUTPUT_BYTES]
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(max(deadline_s - time.monotonic(), 0))
    return output


def require_jolokia(jar: Path) -> None:
    """Raise CasstatError unless `jar` is Jolokia's JVM agent, which includes the launcher."""
    try:
        with (
            file_errors(jar, CasstatError),
            zipfile.ZipFile(jar) as archive,
            archive.open("META-INF/MANIFEST.MF") as manifest,
        ):
            lines = manifest.read(MAX_OUTPUT_BYTES).decode(errors="replace").split("\n")
    except (zipfile.BadZipFile, KeyError, NotImplementedError, RuntimeError):
        raise CasstatError(
            f"{jar}: not a JAR file (hint: use Jolokia's JVM agent, jolokia-agent-jvm-…-javaagent.jar)"
        ) from None
    if f"Main-Class: {MAIN}" not in (line.strip() for line in lines):
        raise CasstatError(
            f"{jar}: not Jolokia's JVM agent (hint: use jolokia-agent-jvm-…-javaagent.jar or jolokia-jvm-1.7.…jar)"
        )


@dataclass(frozen=True)
class Subject:
    """A Cassandra process, the user and group it runs as, and its command line."""

    pid: int
    owner: tuple[int, int]
    command: tuple[str, ...]

    @property
    def folder(self) -> Path:
        """The process's directory in /proc."""
        return PROC / str(self.pid)

    @property
    def user(self) -> str:
        """The user's name, or the UID if it has no name on this host."""
        try:
            return pwd.getpwuid(self.owner[0]).pw_name
        except KeyError:
            return str(self.owner[0])


def chosen(nodes: Sequence[LocalNode], pid: int | None) -> LocalNode:
    """Return the node to attach to. Raises CasstatError if it is not running, or if a PID is required."""
    there = ", ".join(f"{node.pid}{f' (JMX port {node.jmx_port})' if node.jmx_port else ''}" for node in nodes)
    if not nodes:
        raise CasstatError("no Cassandra process is running on this machine, or the current user cannot see it")
    if pid is None and len(nodes) > 1:
        raise CasstatError(f"several Cassandra processes are running on this machine: {there} (hint: specify a PID)")
    for node in nodes:
        if pid in (None, node.pid):
            return node
    raise CasstatError(f"process {pid} is not a Cassandra process on this machine; running: {there}")


def subject(node: LocalNode) -> Subject:
    """Return the node's process. Raises CasstatError if it has ended or the current user cannot see it."""
    try:
        process = psutil.Process(node.pid)
        target = Subject(node.pid, (process.uids().effective, process.gids().effective), tuple(process.cmdline()))
    except psutil.Error:
        raise CasstatError(f"process {node.pid} has ended, or the current user cannot see it") from None
    if not node.is_running():
        raise CasstatError(f"process {node.pid} has ended")
    return target


def runner(process: Subject, jar: Path) -> Runner:
    """Return a runner that lets Jolokia's launcher attach to the process. Raises CasstatError if that is impossible."""
    _require_access(process)
    name = f"process {process.pid}"
    switches = [argument for argument in process.command if argument in (ENABLED, DISABLED)]
    if switches and switches[-1] == DISABLED:
        raise CasstatError(f"{name} runs with {DISABLED}, which prevents attaching (hint: omit it, or {AT_START})")
    if has_separate_network(process.folder):
        raise CasstatError(
            f"{name} runs in a separate network namespace, such as a container's, where Jolokia would be unreachable"
            f" (hint: {AT_START})"
        )
    if not _same(process.folder / "root" / str(jar).lstrip("/"), jar):
        raise CasstatError(
            f"{name} cannot see {jar}: the process may be running in a container"
            " (hint: put the jar where casstat and the node can read it at the same path)"
        )
    if not _attaches_from_here(process):
        return Runner(inside=_inside(process))
    return Runner(owner=process.owner if os.geteuid() == 0 else None)


def _require_access(process: Subject) -> None:
    if os.geteuid() not in (0, process.owner[0]):
        raise CasstatError(
            f"process {process.pid} belongs to {process.user} (hint: run casstat as that user or as root,"
            f" for example '{as_user(process.user, 'casstat attach …')}')"
        )
    try:
        (process.folder / "root").stat()
    except OSError as error:
        raise CasstatError(
            f"{process.folder}/root: {error.strerror} (hint: run casstat as root, with CAP_SYS_PTRACE)"
        ) from None


def _same(path: Path, other: Path) -> bool:
    try:
        return path.samefile(other)
    except OSError:
        return False


def _attaches_from_here(process: Subject) -> bool:
    """Return whether a JVM started in casstat's mount namespace can find the process's attach socket.

    It can if the process uses the same /tmp, or if the process has its own PID namespace: in that case, the JVM looks
    in the process's /tmp.
    """
    if _same(process.folder / "root" / "tmp", Path("/tmp")):  # noqa: S108 - where Java puts its sockets
        return True
    try:
        status = (process.folder / "status").read_text().splitlines()
    except OSError:
        return False
    numbers = next((line.split()[1:] for line in status if line.startswith("NSpid:")), [])
    return len(numbers) > 1


def _inside(process: Subject) -> tuple[str, ...]:
    """Return the command prefix that enters the process's mount namespace. Raises CasstatError."""
    program = shutil.which("nsenter")
    if os.geteuid() != 0 or program is None:
        needs = "run casstat as root" if program else "install nsenter from util-linux"
        raise CasstatError(
            f"process {process.pid} has a private /tmp, perhaps because of systemd's PrivateTmp"
            f" (hint: {needs}, or {AT_START})"
        )
    user, group = process.owner
    return (program, f"--mount=/proc/{process.pid}/ns/mnt", f"--setgid={group}", f"--setuid={user}", "--")


def java_for(process: Subject, run: Runner, environ: Mapping[str, str]) -> Path:
    """Return the java executable to attach with: the node's own if possible, else another one. Raises CasstatError."""
    own = _own_java(process, run)
    modules = run.modules(own, environ) if own else frozenset()
    if modules and SERVER not in modules:
        raise CasstatError(
            f"{own}: the node's Java lacks the {SERVER} module, which Jolokia requires"
            " (hint: run the node with another Java installation)"
        )
    for java in (own, *javas(environ)):
        if java and (ATTACH in (modules if java == own else run.modules(java, environ)) or _has_tools(java)):
            return java
    raise CasstatError(
        f"no Java installation on this machine has the {ATTACH} module (hint: install a JDK, or {AT_START})"
    )


def _own_java(process: Subject, run: Runner) -> Path | None:
    executable = process.folder / "exe"
    try:
        java = executable.readlink()
    except OSError:
        return None
    # The executable may be a program that embeds the JVM, such as jsvc, or an update may have removed it. A container's
    # path may be that of another file here.
    root = process.folder / "root" if run.inside else Path("/")
    return java if java.name == "java" and _same(root / str(java).lstrip("/"), executable) else None


def _has_tools(java: Path) -> bool:
    """Return whether `java` belongs to a JDK 8, which has tools.jar instead of modules."""
    home = java.resolve().parent.parent
    return any((directory / "lib" / "tools.jar").exists() for directory in (home, home.parent))

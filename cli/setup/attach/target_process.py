"""The Cassandra process to attach to: selection, permissions, and the java executable to attach with."""

import os
import pwd
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from cli.errors import CasstatError
from cli.setup.attach.launcher import Runner
from cli.setup.demo.java_runtime import javas
from cli.user_switch import as_user
from collector.node.host.cassandra_processes import LocalNode
from collector.node.host.discovery import has_separate_network

ATTACH, SERVER = "jdk.attach", "jdk.httpserver"
ENABLED, DISABLED = "-XX:-DisableAttachMechanism", "-XX:+DisableAttachMechanism"
AT_START = "load Jolokia at start-up with -javaagent"
PROC = Path("/proc")


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
    numbers = [line.split()[1:] for line in _status(process) if line.startswith("NSpid:")]
    return bool(numbers) and len(numbers[0]) > 1


def _status(process: Subject) -> list[str]:
    try:
        return (process.folder / "status").read_text().splitlines()
    except OSError:
        return []


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

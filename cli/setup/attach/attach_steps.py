"""Attaches Jolokia's agent to a running Cassandra and detaches it; both operations return a one-line result."""

import ipaddress
import os
import secrets
import shlex
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from cli.errors import CasstatError
from cli.parameters.access_options import JOLOKIA, hint_for
from cli.setup.attach import target_process
from cli.setup.attach.target_process import AT_START, DISABLED, TIMEOUT_S, Done
from cli.setup.demo.background_process import bind_error
from cli.setup.demo.java_runtime import POLICY_FILE
from collector.model.snapshot import SourceError
from collector.node.host.cassandra_processes import DEFAULT_URL, LocalNode, local_pid
from collector.node.host.trust import file_problem, listener_problem
from collector.node.jolokia.client import Jolokia, JolokiaAccess, UrlError
from collector.node.jolokia.mbean_source import RELEASE, read_facts
from collector.printable import one_line

# Disables multicast discovery, and also proxy mode, which Jolokia 2 enables by default.
QUIET = {"discoveryEnabled": "false", "disabledServices": "org.jolokia.service.jsr160.Jsr160RequestHandler"}
ASK_TIMEOUT_S = 3.0
PATIENCE_S = 10.0
PAUSE_S = 0.2
# Messages for the user, keyed by a part of the launcher's output.
REFUSALS = {
    "does not support the attach mechanism": (
        f"the JVM does not allow attaching (hint: start it without {DISABLED}, or {AT_START})"
    ),
    "doesn't respond": "the JVM is not responding (hint: check whether the node is hung)",
    "Unable to access jarfile": "the node's user cannot read {jar} (hint: move it to where that user can read it)",
    "Agent JAR not found": "the node's user cannot read {jar} (hint: move it to where that user can read it)",
    "UnsupportedClassVersionError": (
        "this version of Jolokia requires a newer Java than the node's (hint: use Jolokia 1.7)"
    ),
    "failed to initialize": "Jolokia failed to start in the node (hint: see the node's standard output)",
    "Couldn't start agent": "Jolokia could not start listening (hint: see the node's standard output)",
}


@dataclass(frozen=True)
class Agent:
    """The agent's address and credentials; without a user, it accepts every client."""

    host: str
    port: int
    user: str = ""
    password: str = field(default="", repr=False)

    @property
    def url(self) -> str:
        """The agent's URL on this host."""
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}/jolokia"

    @property
    def is_private(self) -> bool:
        """Whether only this host can reach the agent."""
        return ipaddress.ip_address(self.host).is_loopback


@contextmanager
def options_file(agent: Agent, pid: int, owner: tuple[int, int]) -> Iterator[Path]:
    """Write the agent's options and policy to files that only the process's user can read; remove them after the block.

    Yields the path of the options file as the process sees it. The options are not passed on the command line, where
    every user could read the password. Raises CasstatError.
    """
    name = f"casstat-{secrets.token_hex(8)}"
    inside, folder = Path("/tmp", name), Path("/proc", str(pid), "root", "tmp", name)  # noqa: S108 - unpredictable name
    texts = {"policy.xml": POLICY_FILE.read_text(), "agent.properties": _properties(agent, inside / "policy.xml")}
    try:
        _write(folder, {name: text.encode() for name, text in texts.items()}, owner)
        yield inside / "agent.properties"
    finally:
        # If the process has ended, its /proc entry is gone, but a /tmp shared with it still contains the files.
        with _as_user(owner):
            for path in (folder, inside):
                shutil.rmtree(path, ignore_errors=True)


def _write(folder: Path, contents: Mapping[str, bytes], owner: tuple[int, int]) -> None:
    try:
        # Write as the process's user, who may own this /tmp: a symbolic link must not make root write elsewhere.
        with _as_user(owner):
            folder.mkdir(0o700)
            for name, content in contents.items():
                (folder / name).touch(0o600)
                (folder / name).write_bytes(content)
    except OSError as error:
        raise CasstatError(f"cannot write Jolokia's options to the node's /tmp: {error.strerror}") from None


@contextmanager
def _as_user(owner: tuple[int, int]) -> Iterator[None]:
    """Run the block as another user if this process is root.

    The block must not import modules, because that user may not be able to read them.
    """
    if os.geteuid() != 0 or owner[0] == 0:
        yield
        return
    user, group, groups = os.geteuid(), os.getegid(), os.getgroups()
    os.setgroups([])
    os.setegid(owner[1])
    os.seteuid(owner[0])
    try:
        yield
    finally:
        os.seteuid(user)
        os.setegid(group)
        os.setgroups(groups)


def _properties(agent: Agent, policy: Path) -> str:
    options = {**QUIET, "policyLocation": f"file:{policy}"}
    if agent.user:
        options |= {"user": agent.user, "password": agent.password}
    return "".join(f"{name}={_escaped(value)}\n" for name, value in options.items())


def _escaped(text: str) -> str:
    """Return a value with all characters escaped for a Java properties file."""
    units = text.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))


@dataclass(frozen=True)
class Task:
    """Attaches the agent in `jar` to `node`, or detaches it; `here` lists all Cassandra processes on this host."""

    jar: Path
    node: LocalNode
    here: Sequence[LocalNode]
    environ: Mapping[str, str]

    def attach(self, agent: Agent, password_file: Path | None = None) -> str:
        """Attach the agent, query it, and return the result. Raises CasstatError."""
        taken = _taken(agent)
        launch = self._launcher()
        with options_file(agent, self.node.pid, target_process.subject(self.node).owner) as options:
            done = launch("--host", agent.host, "--port", str(agent.port), "--config", str(options), "start")
            name = f"process {self.node.pid}"
            if "already attached" in done.text:
                return f"Jolokia is already attached to {name}: {self._existing(agent, _url(done.text), password_file)}"
            # The launcher also prints "Couldn't start agent" if a busy node is slow to start it.
            slow = "Couldn't start agent" in done.text and not taken
            if slow or "Started Jolokia" in done.text:
                try:
                    answer = self._wait_for_answer(agent, agent.url, PATIENCE_S)
                except SourceError as error:
                    raise self._failed("attach Jolokia to", done) if slow else CasstatError(str(error)) from None
                return f"attached Jolokia to {name}: {answer} {self._command_hint(agent, agent.url, password_file)}"
        if taken:
            raise CasstatError(f"{agent.host}:{agent.port}: {taken} (hint: choose another address with --listen)")
        raise self._failed("attach Jolokia to", done)

    def detach(self) -> str:
        """Detach the agent and return the result. Raises CasstatError."""
        name = f"process {self.node.pid}"
        if self.node.url:
            raise CasstatError(
                f"{name} was started with Jolokia ({self.node.url}), which casstat does not detach"
                " (hint: restart the node without -javaagent)"
            )
        done = self._launcher()("stop")
        if "not attached" in done.text:
            return f"Jolokia is not attached to {name}"
        if "Stopped Jolokia" in done.text:
            return f"detached Jolokia from {name}"
        raise self._failed("detach Jolokia from", done)

    def _launcher(self) -> Callable[..., Done]:
        """Return a function that runs Jolokia's launcher for the node. Raises CasstatError if that is impossible."""
        target_process.require_jolokia(self.jar)
        process = target_process.subject(self.node)
        if problem := file_problem(self.jar, target_process.callers(self.environ) | {process.owner[0]}):
            raise CasstatError(
                f"{self.jar}: not loaded, because {problem} (hint: copy it to a directory such as /usr/share/java)"
            )
        run = target_process.runner(process, self.jar)
        java = target_process.java_for(process, run, self.environ)
        command: list[str | Path] = [java, *target_process.SMALL, "-jar", self.jar]
        return lambda *arguments: run.run([*command, *arguments, str(process.pid)], self.environ)

    def _existing(self, agent: Agent, url: str, password_file: Path | None) -> str:
        try:
            return f"{self._wait_for_answer(agent, url, 0.0)} {self._command_hint(agent, url, password_file)}"
        except (SourceError, UrlError) as error:
            return str(error)

    def _wait_for_answer(self, agent: Agent, url: str, patience_s: float) -> str:
        """Wait until the node responds; return its description. Raises SourceError if it does not respond in time."""
        ends_s = time.monotonic() + patience_s
        access = JolokiaAccess(agent.user, agent.password, hint=hint_for(JOLOKIA))
        owners = {self.node.uid}
        with closing(Jolokia(url, access, lambda host, port: listener_problem(host, port, owners))) as jolokia:
            while True:
                try:
                    return self._identify(jolokia)
                except SourceError:
                    if time.monotonic() > ends_s:
                        raise
                    time.sleep(PAUSE_S)

    def _identify(self, jolokia: Jolokia) -> str:
        facts = read_facts(jolokia, ASK_TIMEOUT_S)
        if local_pid(facts, [self.node]) is None:
            raise SourceError(
                f"{jolokia.url}: this Jolokia is running in another process, not in process {self.node.pid}"
            )
        (version,) = jolokia.post([RELEASE], ASK_TIMEOUT_S)
        release = one_line(version.get("value", "of unknown version"))
        state = f"at {facts.address}" if facts.address else "(starting)"
        return f"{jolokia.url} serves Cassandra {release} {state}"

    def _command_hint(self, agent: Agent, url: str, password_file: Path | None) -> str:
        """Return a hint that contains the command for sampling the node."""
        words = ["casstat"]
        if url != DEFAULT_URL or len(self.here) > 1:
            words += ["--jolokia", url]
        if agent.user:
            words += ["--jolokia-user", agent.user, "--jolokia-password-file", str(password_file)]
        return f"(hint: run '{shlex.join(words)}')"

    def _failed(self, action: str, done: Done) -> CasstatError:
        meanings = (meaning.format(jar=self.jar) for words, meaning in REFUSALS.items() if words in done.text)
        why = next(meanings, done.gist or f"Jolokia's launcher exited with code {done.code}")
        if done.code is None:
            late = f"Jolokia's launcher did not finish within {TIMEOUT_S:.0f} s"
            why = f"{late}: {why}" if done.gist else f"{late} (hint: check whether the node is hung)"
        return CasstatError(f"cannot {action} process {self.node.pid}: {why}")


def _url(text: str) -> str:
    """Return the URL that the launcher printed on a separate line, or "" if there is none."""
    return next((line.strip().rstrip("/") for line in text.splitlines() if line.startswith("http")), "")


def _taken(agent: Agent) -> str:
    """Return the reason why the agent cannot listen on its address, or "" if it can."""
    return bind_error(agent.host, agent.port)

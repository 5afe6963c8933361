"""Client hosts that are reached over SSH: the command runs on all of them at the same time."""

import base64
import os
import queue
import signal
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from cli.errors import CasstatError
from cli.parameters.parameter_types import SshAddress, labels_of
from cli.process_setup import Handler, handling
from cli.record.clients import remote_command
from cli.record.clients.result_files import collect_all
from cli.record.command.command_runner import SUCCESSIVE_KEYS_S, SUCCESSIVE_S
from cli.record.command.output_observers import IDLE_S, CommandLog, OutputLog, OutputObserver
from cli.record.command.supervised_command import FAILED, CommandResult, Escalation, TimeLimit
from cli.record.ssh.ssh_agent import SshAgent, SshSession, ssh_command
from cli.run_folder import LOG_FILE
from cli.runs.agent_clients import AgentClients
from cli.runs.client_results import FILES_FOLDER
from cli.runs.run_redaction import RESULTS_FOLDER
from collector.agents.addresses import NodeAddress
from collector.agents.agent_nodes import nodes_of_agents
from collector.agents.fetching import FetchRange, fetched
from collector.printable import one_line
from collector.recording.writer import folder_name
from collector.redaction.redactor import RedactedStream, Redactor
from collector.runs.run import ClientHost
from collector.runs.run_clock import RunClock
from collector.runs.run_file import CLIENT_HOSTS_FOLDER

BEAT_S = 2.0
# How long to wait for the connection and for the client host to be ready.
READY_S = 60.0
# Maximum number of chunks of output, of at most 8 KiB each, that may be waiting for a slow reader.
MAX_WAITING = 500
HOST_FIELD, INDEX_FIELD = "{host}", "{index}"
# Longer lines are split.
MAX_LINE_BYTES = 1 << 16
OutputReceiver = Callable[[int, bytes], bool]
"""Takes the number of an output stream, and data from it; returns False if it could not take the data in time."""


class ClientCommand:
    """Connects to a client host, and runs the command there in the working directory of a spool (see `remote_command`).

    All methods can be called from any thread; `receive` is called from a thread of this object.
    """

    def __init__(
        self, address: SshAddress, spool: str, run_name: str, words: Sequence[str], receive: OutputReceiver
    ) -> None:
        self._address = address
        self._words = ["casstat", "execute", "--run", run_name, spool, "--", *words]
        self._receive = receive
        self._changed = threading.Condition()
        self._is_ready = False
        self._lines: list[bytes] = []
        self._result: CommandResult | None = None
        # A byte in this pipe wakes the thread.
        self._wake_end, self._wake = os.pipe()
        self._is_closed = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="client command", daemon=True)
        self._thread.start()

    def wait_until_ready(self) -> None:
        """Wait until the other host is ready for `start`. Raises CasstatError."""
        with self._changed:
            if not self._changed.wait_for(lambda: self._is_ready or self._result is not None, READY_S):
                raise CasstatError(f"{self._address.url}: not ready within {READY_S:g} s")
            if self._result is not None:
                raise CasstatError(self._result.problem)

    def start(self, at_s: float) -> None:
        """Start the command when the other host's clock shows `at_s`."""
        self._send(f"start {at_s:.6f}\n")

    def signal(self, number: int) -> None:
        self._send(f"signal {int(number)}\n")

    @property
    def result(self) -> CommandResult | None:
        """How the command ended; None if it has not ended."""
        with self._changed:
            return self._result

    def close(self) -> None:
        """Disconnect; this ends the command if it is still running."""
        if not self._is_closed.is_set():
            self._is_closed.set()
            self._send("")
            self._thread.join()
            os.close(self._wake)
            os.close(self._wake_end)

    def _send(self, line: str) -> None:
        with self._changed:
            self._lines.append(line.encode())
        os.write(self._wake, b"x")

    def _follow(self) -> None:
        try:
            session = SshSession(self._address, ssh_command(self._address, self._words))
        except OSError as error:
            self._end(f"ssh: {error.strerror}")
            return
        problem = ""
        try:
            problem = self._exchange(session)
        finally:
            reason = session.close()
            self._end(problem or reason)

    def _exchange(self, session: SshSession) -> str:
        """Exchange messages until the command has ended or the connection is lost; return a problem, or ""."""
        while not (session.has_ended or self._is_closed.is_set()):
            for message in session.messages(self._wake_end, BEAT_S):
                if "stream" in message:
                    self._take_output(message, session)
                elif problem := self._take(message):
                    return problem
            if self.result is not None:
                break
            with self._changed:
                lines, self._lines = self._lines, []
            session.send(b"".join(lines) + b"\n")
        return ""

    def _take_output(self, message: dict[str, Any], session: SshSession) -> None:
        """Pass output on; while its reader is not ready, send heartbeats so that the command keeps running."""
        try:
            data = base64.b64decode(message["data"])
        except (KeyError, TypeError, ValueError):
            return
        while not self._receive(2 if message["stream"] == 2 else 1, data) and not self._is_closed.is_set():
            session.send(b"\n")

    def _take(self, message: dict[str, Any]) -> str:
        """Process a message; return a problem, or ""."""
        if "protocol" in message:
            if message["protocol"] != remote_command.PROTOCOL:
                remote = one_line(message.get("casstat"))
                return f"casstat {remote} on the remote host does not work with casstat {version('casstat')}"
            with self._changed:
                self._is_ready = True
                self._changed.notify_all()
        elif "exit_code" in message:
            code, problem = message["exit_code"], one_line(message.get("problem") or "")
            if isinstance(code, int):
                with self._changed:
                    self._result = CommandResult(code, f"{self._address.url}: {problem}" if problem else "")
        return ""

    def _end(self, problem: str) -> None:
        """Set a result that states why the connection failed, unless the command has ended."""
        with self._changed:
            if self._result is None:
                failure = "connection lost, so the command is terminated" if self._is_ready else "cannot connect"
                reason = f": {problem}" if problem else ""
                self._result = CommandResult(FAILED, one_line(f"{self._address.url}: {failure}{reason}"))
            self._changed.notify_all()


class RemoteClientHosts:
    """Several client hosts: each is sampled by an agent and runs the command, both over SSH."""

    def __init__(
        self,
        addresses: Sequence[SshAddress],
        words: Sequence[str],
        run_name: str,
        run: Path,
        clients: AgentClients,
        redactor: Redactor,
        clock: RunClock,
    ) -> None:
        """Start the agents, and open the connections that run the command; both end with the `with` block.

        Raises CasstatError.
        """
        self._addresses = addresses
        self._run = run
        self._redactor = redactor
        self._clients = clients
        self._clock = clock
        self._output: queue.Queue[tuple[int, int, bytes]] = queue.Queue(MAX_WAITING)
        self._lines = PrefixedLines(labels_of(addresses))
        # A prefix or a line feed would hide a secret that continues after it.
        self._redacted = defaultdict[tuple[int, int], RedactedStream](lambda: RedactedStream(redactor))
        self._escalation = Escalation()
        self._start_s = 0.0
        self._is_interrupted = False
        # The hosts on which the command was running when its duration was over.
        self._limited: set[int] = set()
        with ExitStack() as stack:
            agents = [stack.enter_context(SshAgent(address, run, source="host")) for address in addresses]
            for agent in agents:
                # The agents stop in parallel.
                stack.callback(agent.begin_stop)
            self._agents = [_started(agent, address) for agent, address in zip(agents, addresses, strict=True)]
            self._hosts = self._introduced([agent.spool for agent in agents])
            self._commands: list[ClientCommand] = []
            for index, (address, agent) in enumerate(zip(addresses, agents, strict=True)):
                command = ClientCommand(
                    address, agent.spool, run_name, _filled(words, address, index), self._receiver(index)
                )
                stack.callback(command.close)
                self._commands.append(command)
            for command in self._commands:
                command.wait_until_ready()
            self._stack = stack.pop_all()

    def __enter__(self) -> "RemoteClientHosts":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def begin(self, now_s: float) -> float:
        """Schedule the command to start on all hosts at the same time; return that time."""
        start_s = now_s + remote_command.START_DELAY_S
        for command, host in zip(self._commands, self._hosts, strict=True):
            command.start(start_s + host.clocks[-1].offset_s)
        self._start_s = start_s
        return start_s

    def run(self, log: OutputLog, observer: OutputObserver, limit: TimeLimit) -> CommandResult:
        """Pass the output on, each line prefixed with its host's name, until the command has ended on all hosts.

        The result has the exit code of the first host on which the command failed.
        """
        with ExitStack() as stack:
            handlers: dict[int, Handler] = {
                signal.SIGINT: lambda *_: self._interrupt(),
                signal.SIGTERM: lambda number, _: self._forward(number),
                signal.SIGHUP: lambda number, _: self._forward(number),
            }
            stack.enter_context(handling(handlers))
            folders = [self._run / host.results for host in self._hosts]
            for folder in folders:
                folder.mkdir(parents=True, exist_ok=True)
            logs = [stack.enter_context(CommandLog(folder / LOG_FILE, self._redactor)) for folder in folders]
            limit.start(max(0.0, self._start_s - self._clock.now_s()))
            self._relay(logs, log, observer, limit)
        results = [
            limit.judged(command.result) if index in self._limited and not self._is_interrupted else command.result
            for index, command in enumerate(self._commands)
            if command.result is not None
        ]
        self._hosts = [
            replace(host, exit_code=result.exit_code) for host, result in zip(self._hosts, results, strict=True)
        ]
        return CommandResult(
            next(filter(None, (result.exit_code for result in results)), 0),
            "; ".join(result.problem for result in results if result.problem),
            ended_by_duration=any(result.ended_by_duration for result in results),
            is_interrupted=self._is_interrupted,
            ended_at_s=max(result.ended_at_s for result in results),
        )

    def _relay(self, logs: Sequence[OutputLog], log: OutputLog, observer: OutputObserver, limit: TimeLimit) -> None:
        """Pass the output on until there is no more of it, and end the command after its duration."""
        while True:
            running = {index for index, command in enumerate(self._commands) if command.result is None}
            number = limit.due_signal() if running else None
            if number is not None:
                self._limited = self._limited or running
                self._send(number)
            has_ended = not running
            try:
                index, stream, data = self._output.get(timeout=0.0 if has_ended else limit.wait_s(IDLE_S))
            except queue.Empty:
                if has_ended:
                    break
                observer.after_output()
                continue
            logs[index].write(data, stream)
            self._pass_on(index, stream, self._lines.add(index, stream, data), log, observer)
        for index, stream, text in self._lines.rest():
            self._pass_on(index, stream, text, log, observer)
        for (index, stream), redacted in self._redacted.items():
            self._append(index, stream, redacted.end(), log)
        observer.end()

    def entries(self) -> tuple[ClientHost, ...]:
        return tuple(self._hosts)

    def stop(self) -> None:
        """Do nothing: the agents run until their recordings have been fetched."""

    def fetch(self, wanted: FetchRange, progress: Callable[[int], None]) -> tuple[ClientHost, ...]:
        """Fetch the recordings and the command's files; return the hosts. Raises CasstatError and KeyboardInterrupt."""
        clients = [self._clients.fetching_client(agent) for agent in self._agents]
        now_s, parent = self._clock.now_s, CLIENT_HOSTS_FOLDER
        result = fetched(clients, wanted, self._run, progress, self._hosts, parent, now_s)
        hosts = [host.with_recording(node) for host, node in zip(self._hosts, result.nodes, strict=True)]
        if result.error is not None:
            raise result.error
        problems = collect_all(
            [
                (address, host.spool, self._run / host.results / FILES_FOLDER)
                for address, host in zip(self._addresses, hosts, strict=True)
            ],
            self._redactor,
        )
        self._hosts = [
            replace(host, problem="; ".join(filter(None, (host.problem, problem and f"{host.address}: {problem}"))))
            for host, problem in zip(hosts, problems, strict=True)
        ]
        return tuple(self._hosts)

    def _introduced(self, spools: Sequence[str]) -> list[ClientHost]:
        """Return the hosts with the offsets of their clocks. Raises CasstatError."""
        with self._clients.connected(self._agents) as clients:
            nodes = nodes_of_agents(clients, self._clock.now_s)
        problems = [node.problem for node in nodes if node.problem]
        if problems:
            raise CasstatError(one_line("; ".join(problems)))
        return [
            ClientHost(**{**vars(node), "spool": spool}, results=f"{RESULTS_FOLDER}/{index}-{folder_name(label)}")
            for index, (node, spool, label) in enumerate(zip(nodes, spools, labels_of(self._addresses), strict=True))
        ]

    def _receiver(self, index: int) -> OutputReceiver:
        def receive(stream: int, data: bytes) -> bool:
            try:
                self._output.put((index, stream, data), timeout=BEAT_S)
            except queue.Full:
                return False
            return True

        return receive

    def _pass_on(self, index: int, stream: int, lines: bytes, log: OutputLog, observer: OutputObserver) -> None:
        if not lines:
            return
        # Only the first host's output sets marks: the same output of another host would begin the same phase again.
        observer.before_output(lines if index == 0 else b"", stream)
        self._append(index, stream, self._redacted[index, stream].add(lines), log)
        text = self._lines.prefixed(index, lines)
        with suppress(OSError):
            while text:
                text = text[os.write(stream, text) :]
        observer.after_output()

    def _append(self, index: int, stream: int, redacted: bytes, log: OutputLog) -> None:
        log.write(self._lines.prefixed(index, redacted), (index, stream))

    def _interrupt(self) -> None:
        self._forward(self._escalation.next_signal(SUCCESSIVE_KEYS_S if os.isatty(0) else SUCCESSIVE_S))

    def _forward(self, number: int) -> None:
        """Pass on a signal that this program has received."""
        self._is_interrupted = True
        self._send(number)

    def _send(self, number: int) -> None:
        for command in self._commands:
            command.signal(number)


def _filled(words: Sequence[str], address: SshAddress, index: int) -> list[str]:
    """Return the command for a host, with the placeholders replaced."""
    return [word.replace(HOST_FIELD, address.host).replace(INDEX_FIELD, str(index)) for word in words]


def _started(agent: SshAgent, address: SshAddress) -> NodeAddress:
    """Return the address of an agent once it serves its API. Raises CasstatError."""
    try:
        return agent.address()
    except CasstatError as error:
        raise CasstatError(f"{address.url}: {error}") from None


class PrefixedLines:
    """Divides the output of several hosts into lines; `labels` are the hosts' names."""

    def __init__(self, labels: Sequence[str]) -> None:
        self._prefixes = [f"{label}: ".encode() for label in labels]
        # The beginning of an incomplete line, by host and stream.
        self._incomplete: dict[tuple[int, int], bytes] = {}

    def add(self, host: int, stream: int, data: bytes) -> bytes:
        """Return the lines that `data` completes, without prefixes, or a part of a very long one."""
        complete, line_feed, rest = (self._incomplete.get((host, stream), b"") + data).rpartition(b"\n")
        text = complete + line_feed
        if len(rest) > MAX_LINE_BYTES:
            text += rest
            rest = b""
        self._incomplete[host, stream] = rest
        return text

    def rest(self) -> Iterator[tuple[int, int, bytes]]:
        """For each incomplete last line, yield its host, its stream, and the line with a line feed."""
        for (host, stream), line in self._incomplete.items():
            if line:
                yield host, stream, line + b"\n"

    def prefixed(self, host: int, text: bytes) -> bytes:
        """Return lines with their host's prefix; a part of a line becomes a line."""
        lines = text.removesuffix(b"\n").split(b"\n") if text else []
        return b"".join(self._prefixes[host] + line + b"\n" for line in lines)

"""A run's metadata: the file `run.json` in its directory.

Times are in seconds since the epoch, on the clock of the machine that wrote the file. Within a schema version, fields
may be added, but the meaning of existing fields does not change; readers ignore unknown fields.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path, PurePosixPath
from sys import float_info
from typing import Any, TypeGuard

from collector.atomic_file import replace_file
from collector.cluster.clock_correction import IDENTITY, ClockCorrection
from collector.printable import MAX_LINE_CHARS, one_line, printable_json
from collector.runs.clock_offset import MAX_OFFSET_S

FILE = "run.json"
SCHEMA_VERSION = 1
NODES_FOLDER, CLIENT_HOSTS_FOLDER = "nodes", "client-hosts"
MAX_BYTES = 16 << 20


class RunFileError(ValueError):
    """A run's file is malformed or of an unknown version; the message is one line without the path."""


@dataclass(frozen=True)
class NodeClock:
    """How far a node's clock was ahead of the writer's at one time; the true offset is within `error_s`."""

    at_s: float
    offset_s: float
    error_s: float


@dataclass(frozen=True)
class RunNode:
    """A node of a run.

    name            the node's name in its recording; "" if it is unknown.
    address         the address that was used to reach it.
    folder          the directory with its journal, relative to the run's; "" if there is none.
    ticks           the number of ticks in the run's time range.
    begin_s, end_s  the time range of these ticks, on the node's clock; None if there are none.
    interval_s      the time between two ticks; None if it is unknown.
    casstat         the version of casstat that recorded the node; "" if it is unknown.
    clocks          measurements of its clock.
    problem         the reason why ticks may be missing, as one line; "" if there is none.
    journal         the directory, relative to the run's, of the journal that a private agent on the recorder's machine
                    writes; "" if there is no such agent, or if the journal has been fetched.
    spool           the node's spool, for a recording over SSH; "" if there is none, or if it has been deleted.
    """

    name: str
    address: str
    folder: str = ""
    ticks: int = 0
    begin_s: float | None = None
    end_s: float | None = None
    interval_s: float | None = None
    casstat: str = ""
    clocks: tuple[NodeClock, ...] = ()
    problem: str = ""
    journal: str = ""
    spool: str = ""

    def clock_correction(self) -> ClockCorrection:
        """Return the conversion of the node's times to the writer's clock; the identity if no clock was measured."""
        if not self.clocks:
            return IDENTITY
        best = min(self.clocks, key=lambda clock: clock.error_s)
        if all(abs(clock.offset_s - best.offset_s) <= clock.error_s + best.error_s for clock in self.clocks):
            # The differences may be measurement errors.
            return ClockCorrection.constant(best.offset_s)
        return ClockCorrection.measured((clock.at_s, clock.offset_s) for clock in self.clocks)


@dataclass(frozen=True)
class ClientHost(RunNode):
    """A machine on which the command of a run runs; its recording contains only the machine's metrics.

    address    "" for the machine of the recorder.
    exit_code  the exit code of its command, as a shell reports it; None if the command has not ended.
    results    the directory with the command's output and files, relative to the run's; "" on the recorder's machine.
    """

    exit_code: int | None = None
    results: str = ""

    def with_recording(self, node: RunNode) -> "ClientHost":
        """Return the host with the recording, the clocks and the problem of `node`, which was fetched from it."""
        return replace(
            self,
            name=node.name or self.name,
            folder=node.folder,
            ticks=node.ticks,
            begin_s=node.begin_s,
            end_s=node.end_s,
            interval_s=node.interval_s or self.interval_s,
            clocks=node.clocks,
            problem=node.problem,
            spool=node.spool,
        )


@dataclass(frozen=True)
class RunPhase:
    """A part of a run; `measured` is false for the warm-up and the cool-down, which totals exclude."""

    name: str
    begin_s: float
    end_s: float
    measured: bool = True


@dataclass(frozen=True)
class RunMark:
    """A labelled point in time in a run; `text` is the label."""

    time_s: float
    text: str


@dataclass(frozen=True)
class RunCommand:
    """The command whose effects a run measures.

    words      the command and its arguments.
    exit_code  as a shell reports it; None if the command has not ended.
    """

    words: tuple[str, ...]
    begin_s: float
    end_s: float | None = None
    exit_code: int | None = None


@dataclass(frozen=True)
class Run:
    """A run: a period of time in which nodes were recorded.

    end_s       None while the run is being recorded, or if its recorder died.
    command     None if the run was fetched from past recordings.
    other_runs  other runs that were active on the nodes at the same time, as `NAME on NODE`.
    warm_up_s   the duration of the warm-up.
    """

    name: str
    begin_s: float
    end_s: float | None
    casstat: str
    tags: Mapping[str, str] = field(default_factory=dict)
    nodes: tuple[RunNode, ...] = ()
    command: RunCommand | None = None
    phases: tuple[RunPhase, ...] = ()
    marks: tuple[RunMark, ...] = ()
    other_runs: tuple[str, ...] = ()
    warm_up_s: float = 0.0
    client_hosts: tuple[ClientHost, ...] = ()

    @property
    def recorded(self) -> tuple[RunNode, ...]:
        """The nodes and the client hosts."""
        return *self.nodes, *self.client_hosts

    def phase(self, name: str) -> RunPhase:
        """Return the phase with this name. Raises KeyError if there is none."""
        return {phase.name: phase for phase in self.phases}[name]

    def content(self) -> dict[str, Any]:
        """Return the content of the run's file."""
        return {"schema_version": SCHEMA_VERSION, **asdict(self)}


def write_run(folder: Path, run: Run) -> None:
    """Write the run's file to its directory. Raises OSError; the previous file then remains unchanged."""
    text = json.dumps(run.content(), indent=1, ensure_ascii=False, allow_nan=False)
    lines = (printable_json(line) + "\n" for line in text.split("\n"))
    replace_file(folder / FILE, "".join(lines).encode())


def problem_text(problems: Sequence[str], count: int) -> str:
    """Return a line of at most 200 characters about `count` problems; `problems` are the first of them.

    Returns "" if there are none.
    """
    for shown in range(len(problems), 0, -1):
        suffix = f" (and {count - shown} more)" if count > shown else ""
        text = one_line("; ".join(problems[:shown]))
        if shown == 1 or len(text) < MAX_LINE_CHARS - len(suffix):
            return text[: MAX_LINE_CHARS - len(suffix)] + suffix
    return ""


def is_finite(value: Any) -> TypeGuard[float]:
    """Return whether a value is a number that can be converted to floating point, and neither NaN nor infinite."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= float_info.max


def is_run(folder: Path) -> bool:
    """Return whether a directory is a run directory, as far as the current user can see."""
    try:
        return (folder / FILE).is_file()
    except OSError:
        return False


def read_run(folder: Path) -> Run:
    """Return the run in a directory. Raises RunFileError, and OSError if the file cannot be read."""
    with (folder / FILE).open("rb") as file:
        raw = file.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise RunFileError(f"larger than {MAX_BYTES >> 20} MiB")
    try:
        content = json.loads(raw)
    except (ValueError, RecursionError):
        raise RunFileError("not JSON") from None
    return run_of(content)


def run_of(content: Any) -> Run:
    """Return the run in the content of a file. Raises RunFileError."""
    if not isinstance(content, dict) or type(content.get("schema_version")) is not int:
        raise RunFileError("not a run")
    if content["schema_version"] != SCHEMA_VERSION:
        version = str(content["schema_version"])[:20]
        raise RunFileError(f"schema version {version} is not supported (hint: update casstat)")
    try:
        return Run(
            _text(content["name"]),
            _number(content["begin_s"]),
            _optional_number(content, "end_s"),
            _text(content["casstat"]),
            {_text(key): _text(value) for key, value in content.get("tags", {}).items()},
            tuple(map(_node, content["nodes"])),
            None if content.get("command") is None else _command(content["command"]),
            tuple(map(_phase, content.get("phases", ()))),
            tuple(RunMark(_number(mark["time_s"]), _text(mark["text"])) for mark in content.get("marks", ())),
            tuple(map(_text, content.get("other_runs", ()))),
            _number(content.get("warm_up_s", 0.0)),
            tuple(map(_client_host, content.get("client_hosts", ()))),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RunFileError(f"malformed field: {one_line(error)}") from None


def _node(content: Mapping[str, Any]) -> RunNode:
    return RunNode(
        _text(content["name"]),
        _text(content["address"]),
        _folder(content.get("folder", "")),
        int(_number(content.get("ticks", 0))),
        _optional_number(content, "begin_s"),
        _optional_number(content, "end_s"),
        _optional_number(content, "interval_s"),
        _text(content.get("casstat", "")),
        tuple(map(_clock, content.get("clocks", ()))),
        _text(content.get("problem", "")),
        _folder(content.get("journal", "")),
        _text(content.get("spool", "")),
    )


def _client_host(content: Mapping[str, Any]) -> ClientHost:
    code = _optional_number(content, "exit_code")
    results = _folder(content.get("results", ""))
    return ClientHost(**vars(_node(content)), exit_code=None if code is None else int(code), results=results)


def _command(content: Mapping[str, Any]) -> RunCommand:
    words = tuple(map(_text, content["words"]))
    code = _optional_number(content, "exit_code")
    begin_s, end_s = _number(content["begin_s"]), _optional_number(content, "end_s")
    return RunCommand(words, begin_s, end_s, None if code is None else int(code))


def _phase(content: Mapping[str, Any]) -> RunPhase:
    measured = content.get("measured", True)
    if not isinstance(measured, bool):
        raise TypeError(f"{str(measured)[:40]} is not true or false")
    return RunPhase(_text(content["name"]), _number(content["begin_s"]), _number(content["end_s"]), measured)


def _clock(content: Mapping[str, Any]) -> NodeClock:
    clock = NodeClock(_number(content["at_s"]), _number(content["offset_s"]), _number(content["error_s"]))
    if abs(clock.offset_s) > MAX_OFFSET_S:
        raise ValueError(f"clock offset {clock.offset_s:g} s is out of range")
    return clock


def _folder(value: Any) -> str:
    """Return a path inside the run's directory, or "". Raises TypeError and ValueError."""
    path = PurePosixPath(_text(value))
    if value and (not path.parts or path.is_absolute() or ".." in path.parts or not value.isprintable()):
        raise ValueError(f"'{value[:40]}' is not a path inside the run's directory")
    return str(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{str(value)[:40]} is not a string")
    return value


def _optional_number(content: Mapping[str, Any], key: str) -> float | None:
    return None if content.get(key) is None else _number(content[key])


def _number(value: Any) -> float:
    if not is_finite(value):
        raise TypeError(f"{str(value)[:40]} is not a number")
    return float(value)

"""A run: a period of time in which nodes were recorded, with its command, phases and marks; and its name and texts.

Times are in seconds since the epoch, on the run's clock: that of the machine that recorded or fetched the run. Only the
time range of a node's ticks is on the node's clock.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePath

from collector.merge.clock_correction import IDENTITY, ClockCorrection
from collector.printable import one_line, unique_text

TOTAL = "total"
"""The name of all measured phases together."""
WARM_UP, MAIN, COOL_DOWN = "warm-up", "main", "cool-down"
"""Names of the phases that are not named by a mark; MAIN lasts from the end of the warm-up to the first mark."""
# An offset of more than a century must be an error.
MAX_OFFSET_S = 4e9


@dataclass(frozen=True)
class NodeClock:
    """How far a node's clock was ahead of the run's at one time; the true offset is within `error_s` of `offset_s`."""

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
        """Return the conversion of the node's times to the run's clock; the identity if no clock was measured."""
        if not self.clocks:
            return IDENTITY
        best = min(self.clocks, key=lambda clock: clock.error_s)
        if all(abs(clock.offset_s - best.offset_s) <= clock.error_s + best.error_s for clock in self.clocks):
            # The differences may be measurement errors.
            return ClockCorrection.constant(best.offset_s)
        return ClockCorrection.measured((clock.at_s, clock.offset_s) for clock in self.clocks)


@dataclass(frozen=True)
class ClientHost(RunNode):
    """A machine on which a run's command is executed; its recording contains only the machine's metrics.

    address    "" for the recorder's machine.
    exit_code  the exit code of its command, as a shell reports it; None if the command has not ended.
    results    the directory with the command's output and files, relative to the run's; "" on the recorder's machine.
    """

    exit_code: int | None = None
    results: str = ""

    def with_recording(self, node: RunNode) -> "ClientHost":
        """Return the host with the recording, the clocks and the problem of `node`, which was fetched from it."""
        return replace(
            self,
            name=node.name,
            folder=node.folder,
            ticks=node.ticks,
            begin_s=node.begin_s,
            end_s=node.end_s,
            interval_s=node.interval_s,
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

    words              the command and its arguments.
    exit_code          as a shell reports it, or 0 if the command ended when it was interrupted after its duration;
                       None if it has not ended.
    duration_s         the time after which the command is interrupted; None if there is no limit.
    ended_by_duration  whether it was interrupted for this reason.
    """

    words: tuple[str, ...]
    begin_s: float
    end_s: float | None = None
    exit_code: int | None = None
    duration_s: float | None = None
    ended_by_duration: bool = False


@dataclass(frozen=True)
class RunCluster:
    """A cluster to which nodes of a run belong.

    name          "" if it is unknown.
    nodes         the names of the run's nodes in it; one for each member, also if several agents recorded it.
    unrecorded    the addresses of its members, at the end of the run, that are not nodes of the run.
    left          the addresses of members that left it during the run and are not nodes of the run.
    unidentified  the names of nodes of the run that never answered and whose addresses are not those of members; each
                  may be any of `unrecorded`.
    """

    name: str
    nodes: tuple[str, ...]
    unrecorded: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    unidentified: tuple[str, ...] = ()

    @property
    def missing(self) -> int:
        """The number of members that are not nodes of the run.

        These are the members at the end or, if they are more, those that left.
        """
        return max(0, len(self.unrecorded) - len(self.unidentified), len(self.left) - len(self.unidentified))


@dataclass(frozen=True)
class ClockStep:
    """A change of the clock of the machine that recorded a run.

    time_s  when it was set, as in all times of the run: as if it had not been set since the run began.
    step_s  by how much it was set; negative if it was set back.
    """

    time_s: float
    step_s: float


@dataclass(frozen=True)
class RunCondition:
    """A condition of `record --fail-if`, and its result when the run was completed.

    text     the condition, such as `read_p99_ms > 10`.
    met      whether it is met or cannot be checked; None if the run has not been completed.
    reasons  why it is met or cannot be checked, one line each.
    """

    text: str
    met: bool | None = None
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Run:
    """A run: a period of time in which nodes were recorded.

    end_s       None while the run is being recorded, or if its recorder died.
    command     None if the run was fetched from past recordings.
    other_runs  other runs that were active on the nodes at the same time, as `NAME on NODE`.
    warm_up_s   the duration of the warm-up.
    conditions  the conditions of `record --fail-if`.
    clusters    the clusters of the nodes; empty if they are unknown.
    clock_steps  the changes of the recorder's clock during the run.
    options     the nodes and options of `record` that no other field states, as words; None if they are unknown.
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
    conditions: tuple[RunCondition, ...] = ()
    clusters: tuple[RunCluster, ...] = ()
    clock_steps: tuple[ClockStep, ...] = ()
    options: tuple[str, ...] | None = None

    @property
    def nodes_unrecorded(self) -> int:
        """The number of members of the nodes' clusters that are not nodes of the run."""
        return sum(cluster.missing for cluster in self.clusters)

    @property
    def recorded(self) -> tuple[RunNode, ...]:
        """The nodes and the client hosts."""
        return *self.nodes, *self.client_hosts

    def phase(self, name: str) -> RunPhase:
        """Return the phase with this name. Raises KeyError if there is none."""
        return {phase.name: phase for phase in self.phases}[name]


def phases_of(
    begin_s: float, command_end_s: float, end_s: float, warm_up_s: float, marks: Sequence[RunMark]
) -> tuple[RunPhase, ...]:
    """Return the phases of a run, which are contiguous, have different names, and are not empty.

    The warm-up begins with the command and is followed by MAIN. Each mark between the warm-up and the command's end
    begins a phase with the mark's text as its name; if there are marks within the warm-up, the phase of the last one
    replaces MAIN. The cool-down lasts from the command's end to the run's; marks in it are ignored.
    """
    warm_end_s = min(begin_s + warm_up_s, command_end_s)
    measured = [(warm_end_s, MAIN)]
    for mark in sorted(marks, key=lambda mark: mark.time_s):
        if mark.time_s <= warm_end_s:
            measured = [(warm_end_s, mark.text)]
        elif mark.time_s < command_end_s:
            measured.append((mark.time_s, mark.text))
    ends_s = [*(phase_begin_s for phase_begin_s, _ in measured[1:]), command_end_s]
    phases = [
        RunPhase(WARM_UP, begin_s, warm_end_s, measured=False),
        *(RunPhase(text, at_s, to_s) for (at_s, text), to_s in zip(measured, ends_s, strict=True)),
        RunPhase(COOL_DOWN, command_end_s, end_s, measured=False),
    ]
    return _with_different_names([phase for phase in phases if phase.begin_s < phase.end_s])


def _with_different_names(phases: Sequence[RunPhase]) -> tuple[RunPhase, ...]:
    """Return the phases; a name that is repeated or reserved gets a number."""
    names: set[str] = set()
    renamed = []
    for phase in phases:
        # A mark's text may be a reserved name.
        reserved = {TOTAL, *((WARM_UP, COOL_DOWN) if phase.measured else ())}
        name = unique_text(phase.name, names | reserved)
        names.add(name)
        renamed.append(RunPhase(name, phase.begin_s, phase.end_s, phase.measured))
    return tuple(renamed)


MAX_NAME_CHARS, MAX_TEXT_CHARS = 100, 1000
DEFAULT_NAME = "run"
_SHELLS = ("bash", "dash", "ksh", "sh", "zsh")
# Programs that start another program or a script, each with its options whose value is a word of its own.
_STARTERS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_SHELLS, ("-o", "-O", "--rcfile", "--init-file")),
    "python": ("-W", "-X"),
    **dict.fromkeys(("nohup", "perl", "ruby", "node", "setsid"), ()),
    "java": ("-cp", "-classpath", "--class-path"),
    "time": ("-f", "--format", "-o", "--output"),
    "nice": ("-n", "--adjustment"),
    "ionice": ("-c", "-n"),
    "stdbuf": ("-i", "-o", "-e"),
    "taskset": (),
    "chrt": (),
    "numactl": ("-N", "-m", "-C", "-i", "-p"),
    "timeout": ("-k", "--kill-after", "-s", "--signal"),
    "env": ("-u", "--unset", "-C", "--chdir"),
    "sudo": ("-u", "-g"),
}
# The number of words between such a program's options and what it starts.
_POSITIONAL = {"taskset": 1, "chrt": 1, "timeout": 1}
_CONTAINERS = ("docker", "podman", "nerdctl")
# The options of `docker run` and `docker exec` without a value; `-it` is `-i -t`.
_CONTAINER_FLAGS = re.compile(
    "-[ditqP]+|--(detach|disable-content-trust|init|interactive|no-healthcheck|oom-kill-disable|privileged|publish-all"
    "|quiet|read-only|rm|sig-proxy|tty)"
)
_SUBCOMMANDS = {"casstat": ("demo",)}
_VERSION = re.compile(r"(?<=[a-z])[\d.]+$")
_NOT_PROGRAMS = ("cd", "export", "for", "if", "set", "source", "until", "while", ".")
_ASSIGNMENT = re.compile(r"\w+=")
_PROGRAM = re.compile(r"[\w./+-]+")


def require_accepted(what: str, text: object, longest: int) -> None:
    """Raise ValueError unless agents accept a text of at most `longest` characters; `what` names it in the message."""
    if not isinstance(text, str) or not text.strip() or not text.isprintable() or len(text) > longest:
        raise ValueError(f"{what} must be a single line of 1 to {longest} printable characters and must not be blank")


def accepted_name(text: str) -> str:
    """Return a name for a run that agents accept, derived from a text such as a command's name."""
    return one_line(text)[:MAX_NAME_CHARS] or DEFAULT_NAME


def command_name(words: Sequence[str]) -> str:
    """Return the name of the program or script that a command runs, without its directory.

    A shell, an interpreter or a program that starts another one, such as `time`, is left out if a script or program
    follows; options of these programs that take a value are skipped with it. A container has the name of its image.
    """
    rest = list(words)
    while len(rest) > 1 and (found := _started(rest)):
        rest = found
    name = PurePath(rest[0]).name
    if name in _CONTAINERS and rest[1:2] == ["run"] and (image := _after_container_options(rest[2:])):
        # REGISTRY:PORT/NAME:TAG@DIGEST
        return PurePath(image[0].partition("@")[0]).name.partition(":")[0]
    count = 1 + sum(word in _SUBCOMMANDS.get(name, ()) for word in rest[1:2])
    return " ".join([name, *rest[1 : count + 1]]) if name in _SUBCOMMANDS else name


def _after_container_options(words: Sequence[str]) -> list[str]:
    """Return the words after the options of `docker run` or `docker exec`."""
    rest = list(words)
    while rest and rest[0].startswith("-"):
        option = rest.pop(0)
        if "=" not in option and not _CONTAINER_FLAGS.fullmatch(option):
            rest = rest[1:]
    return rest


def _started(words: Sequence[str]) -> list[str]:
    """Return the words of the script or program that the first word's program starts; [] if there is none."""
    program = _VERSION.sub("", PurePath(words[0]).name)
    if program in _CONTAINERS and words[1] == "exec":
        return _after_container_options(words[2:])[1:]
    if program not in _STARTERS:
        return []
    rest = list(words[1:])
    while rest and (rest[0].startswith("-") or (program == "env" and _ASSIGNMENT.match(rest[0]))):
        option = rest.pop(0)
        if program in _SHELLS and re.fullmatch("-[a-z]*c", option):
            return _first_command(rest)
        if program in ("python", "perl", "ruby", "node") and option in ("-c", "-e"):
            return []
        if option in _STARTERS[program]:
            rest = rest[1:]
    return rest[_POSITIONAL.get(program, 0) :]


def _first_command(rest: Sequence[str]) -> list[str]:
    """Return the first command of the script after `sh -c`; [] if it does not begin with a program's name."""
    try:
        words = shlex.split(rest[0]) if rest else []
    except ValueError:
        return []
    while words and (words[0] == "exec" or _ASSIGNMENT.match(words[0])):
        words.pop(0)
    return words if words and _PROGRAM.fullmatch(words[0]) and words[0] not in _NOT_PROGRAMS else []


def step_text(step: ClockStep) -> str:
    """Return a change of the recorder's clock as text."""
    return f"the recorder's clock was set {'back' if step.step_s < 0 else 'forward'} by {abs(step.step_s):,.1f} s"


def same_node_text(names: Sequence[str]) -> str:
    """Return that several agents recorded one node; `names` are its names on them."""
    distinct = sorted(set(names))
    if len(distinct) == 1:
        return f"the node {one_line(distinct[0])} was recorded by {len(names)} agents, and counts once"
    *first, last = map(one_line, distinct)
    return f"the nodes {', '.join(first)} and {last} are the same, and count once"

"""The texts that agents accept: a run's name, and the text of a mark."""

import re
import shlex
from collections.abc import Sequence
from pathlib import PurePath

from collector.printable import one_line
from collector.runs.run import ClockStep

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

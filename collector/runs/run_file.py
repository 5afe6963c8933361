"""A run's metadata: the file `run.json` in its directory, without secrets.

Times are in seconds since the epoch, on the clock of the machine that wrote the file; only the time range of a node's
ticks is on the node's clock. Within a schema version, fields may be added, but the meaning of existing fields does not
change; readers ignore unknown fields.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path, PurePosixPath
from sys import float_info
from typing import Any, TypeGuard, TypeVar

from collector.file_access import UnsuitableFileError, read_whole, write_json
from collector.printable import one_line
from collector.redaction.redactor import Redactor, redacted_tags
from collector.runs.run import (
    MAX_OFFSET_S,
    ClientHost,
    ClockStep,
    NodeClock,
    Run,
    RunCluster,
    RunCommand,
    RunCondition,
    RunMark,
    RunNode,
    RunPhase,
)

FILE = "run.json"
SCHEMA_VERSION = 1
NODES_FOLDER, CLIENT_HOSTS_FOLDER = "nodes", "client-hosts"
MAX_BYTES = 16 << 20
Node = TypeVar("Node", bound=RunNode)
_KEPT_NODE_FIELDS = ("name", "address", "folder", "casstat", "journal", "spool")
KEPT_FIELDS = (
    "casstat",
    *(f"nodes.{field}" for field in _KEPT_NODE_FIELDS),
    *(f"client_hosts.{field}" for field in (*_KEPT_NODE_FIELDS, "results")),
    "conditions.text",
    *(f"clusters.{field}" for field in ("name", "nodes", "unrecorded", "left", "unidentified")),
)
"""The texts that casstat needs to read a run and its recordings."""


class RunFileError(ValueError):
    """A run's file is malformed or of an unknown version; the message is one line without the path."""


def redacted_run(run: Run, redactor: Redactor) -> Run:
    """Return the run with the secrets in its texts replaced, except in KEPT_FIELDS."""
    text = redactor.text
    return replace(
        run,
        name=text(run.name),
        tags=redacted_tags(run.tags, redactor),
        nodes=tuple(_redacted_node(node, redactor) for node in run.nodes),
        command=None if run.command is None else replace(run.command, words=redactor.words(run.command.words)),
        options=None if run.options is None else redactor.words(run.options),
        phases=tuple(replace(phase, name=text(phase.name)) for phase in run.phases),
        marks=tuple(replace(mark, text=text(mark.text)) for mark in run.marks),
        other_runs=tuple(map(text, run.other_runs)),
        client_hosts=tuple(_redacted_node(host, redactor) for host in run.client_hosts),
        conditions=tuple(
            replace(condition, reasons=tuple(map(text, condition.reasons))) for condition in run.conditions
        ),
    )


def _redacted_node(node: Node, redactor: Redactor) -> Node:
    return replace(node, problem=redactor.text(node.problem)) if node.problem else node


def content_of(run: Run) -> dict[str, Any]:
    """Return the content of the run's file, without the secrets that have a known form."""
    return {"schema_version": SCHEMA_VERSION, **asdict(redacted_run(run, Redactor()))}


def write_run(folder: Path, run: Run) -> None:
    """Write the run's file to its directory. Raises OSError; the previous file then remains unchanged."""
    write_json(folder / FILE, content_of(run))


def is_run(folder: Path) -> bool:
    """Return whether a directory is a run directory, as far as the current user can see."""
    try:
        return (folder / FILE).is_file()
    except OSError:
        return False


def read_run(folder: Path) -> Run:
    """Return the run in a directory. Raises RunFileError, and OSError if the file cannot be read."""
    try:
        content = json.loads(read_whole(folder / FILE, MAX_BYTES))
    except UnsuitableFileError as error:
        raise RunFileError(str(error)) from None
    except (ValueError, RecursionError):
        raise RunFileError("not JSON") from None
    return run_of(content)


def run_of(content: Any) -> Run:
    """Return the run described by the decoded JSON of a run's file. Raises RunFileError.

    Earlier versions did not redact the file, so secrets that have a known form are replaced here as well.
    """
    if not isinstance(content, dict) or type(content.get("schema_version")) is not int:
        raise RunFileError("not a run")
    if content["schema_version"] != SCHEMA_VERSION:
        version = str(content["schema_version"])[:20]
        raise RunFileError(f"schema version {version} is not supported (hint: update casstat)")
    try:
        run = Run(
            text_of(content["name"]),
            number_of(content["begin_s"]),
            _optional_number(content, "end_s"),
            text_of(content["casstat"]),
            {text_of(key): text_of(value) for key, value in content.get("tags", {}).items()},
            tuple(map(_node, content["nodes"])),
            None if content.get("command") is None else _command(content["command"]),
            tuple(map(_phase, content.get("phases", ()))),
            tuple(RunMark(number_of(mark["time_s"]), text_of(mark["text"])) for mark in content.get("marks", ())),
            tuple(map(text_of, content.get("other_runs", ()))),
            number_of(content.get("warm_up_s", 0.0)),
            tuple(map(_client_host, content.get("client_hosts", ()))),
            tuple(map(_condition, content.get("conditions", ()))),
            tuple(map(_cluster, content.get("clusters", ()))),
            tuple(ClockStep(number_of(s["time_s"]), number_of(s["step_s"])) for s in content.get("clock_steps", ())),
            None if content.get("options") is None else tuple(map(text_of, content["options"])),
        )
        return redacted_run(run, Redactor())
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise RunFileError(f"malformed field: {one_line(error)}") from None


def _node(content: Mapping[str, Any]) -> RunNode:
    return RunNode(
        text_of(content["name"]),
        text_of(content["address"]),
        _folder(content.get("folder", "")),
        int(number_of(content.get("ticks", 0))),
        _optional_number(content, "begin_s"),
        _optional_number(content, "end_s"),
        _optional_number(content, "interval_s"),
        text_of(content.get("casstat", "")),
        tuple(map(_clock, content.get("clocks", ()))),
        text_of(content.get("problem", "")),
        _folder(content.get("journal", "")),
        text_of(content.get("spool", "")),
    )


def _client_host(content: Mapping[str, Any]) -> ClientHost:
    code = _optional_number(content, "exit_code")
    results = _folder(content.get("results", ""))
    return ClientHost(**vars(_node(content)), exit_code=None if code is None else int(code), results=results)


def _command(content: Mapping[str, Any]) -> RunCommand:
    words = tuple(map(text_of, content["words"]))
    code = _optional_number(content, "exit_code")
    begin_s, end_s = number_of(content["begin_s"]), _optional_number(content, "end_s")
    duration_s, is_ended = _optional_number(content, "duration_s"), _truth(content.get("ended_by_duration", False))
    return RunCommand(words, begin_s, end_s, None if code is None else int(code), duration_s, is_ended)


def _phase(content: Mapping[str, Any]) -> RunPhase:
    measured = _truth(content.get("measured", True))
    return RunPhase(text_of(content["name"]), number_of(content["begin_s"]), number_of(content["end_s"]), measured)


def _condition(content: Mapping[str, Any]) -> RunCondition:
    met = None if content.get("met") is None else _truth(content["met"])
    return RunCondition(text_of(content["text"]), met, tuple(map(text_of, content.get("reasons", ()))))


def _cluster(content: Mapping[str, Any]) -> RunCluster:
    nodes = tuple(map(text_of, content["nodes"]))
    others = (tuple(map(text_of, content.get(name, ()))) for name in ("unrecorded", "left", "unidentified"))
    return RunCluster(text_of(content["name"]), nodes, *others)


def _clock(content: Mapping[str, Any]) -> NodeClock:
    clock = NodeClock(number_of(content["at_s"]), number_of(content["offset_s"]), number_of(content["error_s"]))
    if abs(clock.offset_s) > MAX_OFFSET_S:
        raise ValueError(f"clock offset {clock.offset_s:g} s is out of range")
    return clock


def _folder(value: Any) -> str:
    """Return `value` if it is empty or a path inside the run's directory. Raises TypeError or ValueError otherwise."""
    path = PurePosixPath(text_of(value))
    if value and (not path.parts or path.is_absolute() or ".." in path.parts or not value.isprintable()):
        raise ValueError(f"'{value[:40]}' is not a path inside the run's directory")
    return str(value)


def text_of(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{str(value)[:40]} is not a string")
    return value


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{str(value)[:40]} is not true or false")
    return value


def _optional_number(content: Mapping[str, Any], key: str) -> float | None:
    return None if content.get(key) is None else number_of(content[key])


def is_finite(value: Any) -> TypeGuard[float]:
    """Return whether a value is a number that can be converted to floating point, and neither NaN nor infinite."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= float_info.max


def number_of(value: Any) -> float:
    if not is_finite(value):
        raise TypeError(f"{str(value)[:40]} is not a number")
    return float(value)

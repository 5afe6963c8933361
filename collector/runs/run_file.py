"""A run's metadata: the file `run.json` in its directory, without secrets.

Times are in seconds since the epoch, on the clock of the machine that wrote the file; only the time range of a node's
ticks is on the node's clock. Within a schema version, fields may be added, but the meaning of existing fields does not
change; readers ignore unknown fields.
"""

from dataclasses import asdict, replace
from pathlib import Path, PurePosixPath
from sys import float_info
from typing import Any, TypeGuard, TypeVar

from collector.file_access import write_json
from collector.redaction.redactor import Redactor, redacted_tags
from collector.runs.run import MAX_OFFSET_S, Run, RunNode
from collector.stored_json import read_content, require_version, value_of

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
    return run_of(read_content(folder / FILE, RunFileError, MAX_BYTES))


def run_of(content: Any) -> Run:
    """Return the run described by the decoded JSON of a run's file. Raises RunFileError.

    Earlier versions did not redact the file, so secrets that have a known form are replaced here as well.
    """
    require_version(content, SCHEMA_VERSION, "run", RunFileError)
    return redacted_run(value_of(content, Run, RunFileError, _require_possible), Redactor())


def _require_possible(run: Run) -> None:
    for group, nodes in (("nodes", run.nodes), ("client_hosts", run.client_hosts)):
        for number, node in enumerate(nodes):
            where = f"{group}[{number}]"
            for name in ("folder", "journal", "results"):
                if path := getattr(node, name, ""):
                    require_inside(path, "run", f"{where}.{name}")
            for index, clock in enumerate(node.clocks):
                if not abs(clock.offset_s) <= MAX_OFFSET_S:
                    raise ValueError(f"clock offset {clock.offset_s:g} s is out of range (at {where}.clocks[{index}])")


def require_inside(path: str, noun: str, where: str) -> None:
    """Raise ValueError unless the path at `where` in a file is inside the directory of the run or sweep."""
    parts = PurePosixPath(path)
    if not parts.parts or parts.is_absolute() or ".." in parts.parts or not path.isprintable():
        raise ValueError(f"'{path[:40]}' is not a path inside the {noun}'s directory (at {where})")


def is_finite(value: Any) -> TypeGuard[float]:
    """Return whether a value is a number that can be converted to floating point, and neither NaN nor infinite."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= float_info.max

"""A run's metadata without secrets."""

from dataclasses import replace
from typing import TypeVar

from collector.redaction.redactor import Redactor, redacted_tags
from collector.runs.run import Run, RunNode

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

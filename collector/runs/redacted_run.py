"""A run's metadata without secrets."""

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from collector.redaction.redactor import Redactor
from collector.runs.run import Run, RunNode

Node = TypeVar("Node", bound=RunNode)


def redacted_run(run: Run, redactor: Redactor) -> Run:
    """Return the run with the secrets in its texts replaced; directories and addresses remain as they are."""
    text = redactor.text
    return replace(
        run,
        name=text(run.name),
        tags=redacted_tags(run.tags.items(), redactor),
        nodes=tuple(_node(node, redactor) for node in run.nodes),
        command=None if run.command is None else replace(run.command, words=redactor.words(run.command.words)),
        options=None if run.options is None else redactor.words(run.options),
        phases=tuple(replace(phase, name=text(phase.name)) for phase in run.phases),
        marks=tuple(replace(mark, text=text(mark.text)) for mark in run.marks),
        other_runs=tuple(map(text, run.other_runs)),
        client_hosts=tuple(_node(host, redactor) for host in run.client_hosts),
        conditions=tuple(
            replace(condition, reasons=tuple(map(text, condition.reasons))) for condition in run.conditions
        ),
    )


def redacted_tags(tags: Iterable[tuple[str, str]], redactor: Redactor) -> dict[str, str]:
    """Return tags with the secrets in them replaced; a tag such as `token=x` is one."""
    return dict(_tag(key, value, redactor) for key, value in tags)


def _tag(key: str, value: str, redactor: Redactor) -> tuple[str, str]:
    word = f"{key}={value}"
    (redacted,) = redactor.words([word])
    if redacted == word:
        return key, value
    key, _, value = redacted.partition("=")
    return key, value


def _node(node: Node, redactor: Redactor) -> Node:
    return replace(node, problem=redactor.text(node.problem)) if node.problem else node

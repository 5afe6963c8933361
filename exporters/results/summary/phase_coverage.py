"""Which nodes and intervals the figures of a phase lack, as columns of its summary and as text."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from collector.merge.coverage import NO_ANSWER, Gap, NodeCoverage
from collector.printable import count_text, local_time, one_line
from exporters.rows.formulas import Cell

COVERAGE_COLUMNS = ("nodes", "nodes_missing", "nodes_incomplete", "node_intervals_missing", "nodes_unrecorded")
"""The columns that `coverage_cells` returns."""
MAX_NODES, MAX_GAPS = 5, 3
"""How many nodes, and how many gaps of a node, a text lists."""


def coverage_cells(nodes: Sequence[NodeCoverage], included: int, unrecorded: int) -> dict[str, Cell]:
    """Return the columns of a phase.

    nodes       the coverage of all nodes of the run.
    included    the number of nodes that have values in the phase.
    unrecorded  the number of nodes that are members of the cluster, but are not nodes of the run.
    """
    incomplete = sum(0 < node.missing < node.intervals for node in nodes)
    counts = (included, len(nodes) - included, incomplete, sum(node.missing for node in nodes), unrecorded)
    return dict(zip(COVERAGE_COLUMNS, counts, strict=True))


def incomplete_nodes(nodes: Sequence[NodeCoverage]) -> tuple[NodeCoverage, ...]:
    """Return the nodes with missing intervals, or without any complete interval."""
    return tuple(node for node in nodes if node.missing or not node.intervals)


def nodes_text(values: Mapping[str, Cell]) -> str:
    """Return the nodes that a phase's figures include, such as `2 of 3`; "" if all of them answered throughout."""
    known, missing, incomplete, _, unrecorded = (_count(values, name) for name in COVERAGE_COLUMNS)
    texts = [f"{known} of {known + missing + unrecorded}"] if missing or unrecorded else []
    if incomplete:
        texts = [*(texts or [str(known)]), f"{incomplete} partly"]
    return ", ".join(texts)


def subject_text(values: Mapping[str, Cell]) -> str:
    """Return who served the operations of a phase: the cluster, or a part of its nodes."""
    known, missing, incomplete, _, unrecorded = (_count(values, name) for name in COVERAGE_COLUMNS)
    members = known + missing + unrecorded
    subject, of = ("The cluster", "its nodes") if members == known else (f"{known} of {members} nodes", "them")
    return f"{subject} ({incomplete} of {of} not throughout)" if incomplete else subject


def is_lower_bound(values: Mapping[str, Cell]) -> bool:
    """Return whether a phase's rates are lower bounds, because operations in missing intervals may be unknown."""
    return _count(values, "nodes_incomplete") > 0


def _count(values: Mapping[str, Cell], name: str) -> int:
    value = values.get(name)
    return round(value) if isinstance(value, int | float) else 0


def node_text(node: NodeCoverage, clock: Callable[[float], str]) -> str:
    """Return what a node lacks, without its name; `clock` formats times."""
    if node.problem:
        return f"not recorded: {one_line(node.problem)}"
    if not node.intervals:
        interval = "" if node.interval_s is None else f" of {node.interval_s:g} s"
        return f"no complete interval{interval}"
    longest = sorted(node.gaps, key=lambda gap: gap.begin_s - gap.end_s)[:MAX_GAPS]
    texts = [gap_text(gap, clock) for gap in sorted(longest, key=lambda gap: gap.begin_s)]
    if len(node.gaps) > len(longest):
        texts.append(count_text(len(node.gaps) - len(longest), "shorter gap"))
    return ", ".join([f"{node.answered} of {count_text(node.intervals, 'interval')}", *texts])


def gap_text(gap: Gap, clock: Callable[[float], str]) -> str:
    """Return what happened in a gap, such as `did not answer from 12:00:05 to 12:00:11`."""
    what = "did not answer" if gap.cause == NO_ANSWER else "was not sampled"
    until = "until the end" if gap.is_open else f"to {clock(gap.end_s)}"
    return f"{what} from {clock(gap.begin_s)} {until}{' (restarted)' if gap.restarted else ''}"


def coverage_texts(nodes: Sequence[NodeCoverage], clock: Callable[[float], str]) -> list[str]:
    """Return a line for each node that lacks something; those without values come first."""
    ordered = sorted(nodes, key=lambda node: node.answered)
    texts = [f"{one_line(node.node)}: {node_text(node, clock)}" for node in ordered[:MAX_NODES]]
    if len(ordered) > MAX_NODES:
        texts.append(f"{count_text(len(ordered) - MAX_NODES, 'more node')} with missing intervals")
    return texts


def time_of_day(time_s: float) -> str:
    """Return the local time of day."""
    return local_time(time_s, "%H:%M:%S")


def coverage_of_content(content: Any) -> tuple[NodeCoverage, ...]:
    """Return the nodes in a summary's decoded JSON. Raises KeyError, TypeError, ValueError and AttributeError."""
    return tuple(
        NodeCoverage(
            str(node["node"]),
            None if node["interval_s"] is None else float(node["interval_s"]),
            int(node["intervals"]),
            int(node["missing"]),
            tuple(
                Gap(
                    float(gap["begin_s"]),
                    float(gap["end_s"]),
                    str(gap["cause"]),
                    int(gap["intervals"]),
                    bool(gap["restarted"]),
                    bool(gap["is_open"]),
                )
                for gap in node["gaps"]
            ),
            str(node["problem"]),
        )
        for node in content
    )

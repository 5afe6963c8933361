"""`nodetool status`: the cluster's nodes, and which of them are up."""

import re
from collections import Counter
from dataclasses import dataclass

from collector.node.nodetool.reports.report import Columns, Draft, Report, columns, shown

ARGUMENTS = ("status",)

_STATES = {"cassandra_endpoints_up": "U", "cassandra_endpoints_down": "D"}
FILLS = frozenset(_STATES)
_NEEDED = ("--", "Address", "Host ID")
_LABELS = (*_NEEDED, "Load", "Tokens", "Token", "Owns (effective)", "Owns", "Rack")
_STATE = re.compile(r"[UD?][NLJM]")
_HOST_ID = re.compile(r"(?<!\S)[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?!\S)")
_WORD = re.compile(r"(?<!\S)\S+")


@dataclass(frozen=True)
class Node:
    """A row of the report: a node's state (two letters), address and host id ("" if it is not known yet)."""

    state: str
    address: str
    host_id: str


def parse(text: str) -> Report:
    """Return the numbers of nodes up and down, and the nodes' addresses by host id.

    The numbers are absent unless every line is recognised, because an omitted node would make them wrong.
    """
    draft = Draft(text)
    nodes, is_complete = _nodes(draft)
    if is_complete:
        for name, state in _STATES.items():
            draft.put((name,), sum(node.state.startswith(state) for node in nodes))
    elif draft.recognised:
        draft.problem("the numbers of nodes up and down are unknown: the report is incomplete or malformed")
    id_counts = Counter(node.host_id for node in nodes)
    return draft.report({node.host_id: node.address for node in nodes if node.host_id and id_counts[node.host_id] == 1})


def _nodes(draft: Draft) -> tuple[list[Node], bool]:
    """Return the nodes, and whether the list is complete."""
    nodes: list[Node] = []
    header: Columns | None = None
    is_sound, ended = True, False
    for line in draft.lines:
        if table := columns(line, _LABELS, _NEEDED):
            header, ended, draft.recognised = table, False, True
        elif header and line.strip() and not line.startswith("Datacenter:"):
            node = _node(header, line)
            is_sound = is_sound and node is not None and _is_new(node, nodes)
            if node:
                nodes.append(node)
            else:
                draft.problem("row does not match its header", shown(line.split()[0]))
        else:
            # An empty line follows only the last data centre, so in a truncated report it is missing.
            ended = ended or bool(header and not line.strip())
            is_sound = is_sound and not any(map(_STATE.fullmatch, line.split()[:1]))
            header = None
    return nodes, is_sound and ended


def _is_new(node: Node, nodes: list[Node]) -> bool:
    return all((node.host_id or None) != other.host_id and node.address != other.address for other in nodes)


def _node(header: Columns, line: str) -> Node | None:
    # In Cassandra 3.11, a load that is wider than its column shifts the cells after it, but not those before it.
    start = dict(zip(header.labels, header.starts, strict=True))
    state, address = (_WORD.match(line, start[label]) for label in ("--", "Address"))
    host_ids = _HOST_ID.findall(line) or ["" for word in line.split() if word == "null"]
    if not state or not _STATE.fullmatch(state[0]) or not address or len(host_ids) != 1:
        return None
    return Node(state[0], address[0], host_ids[0])

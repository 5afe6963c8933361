"""Messages about keyspaces, tables and ports that do not exist; each message lists the existing ones."""

from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase

from collector.node.host.cassandra_processes import LocalNode
from collector.node.jolokia.table_budget import OTHERS
from collector.node.metrics.tables import is_system_keyspace
from collector.node.selection import Table
from collector.printable import one_line

MAX_NAMES = 20
HINT = "(hint: use --wait if it does not exist yet)"
PORT_HINT = "(hint: use --wait if the node has not started yet)"


def missing_keyspace_message(keyspace: str, table: str, existing: Collection[Table]) -> str:
    """Return the message for a keyspace or table that the node lacks; `existing` contains those that it has."""
    return f"{_missing_name_message(keyspace, table, existing, 'the node', ', which')} {HINT}"


def missing_recorded_message(keyspace: str, table: str, recorded: Collection[Table]) -> str:
    """Return the message for a keyspace or table that the recording lacks; `recorded` contains those that it has."""
    return _missing_name_message(keyspace, table, recorded, "the recording", ": the recording")


def _missing_name_message(keyspace: str, table: str, existing: Collection[Table], owner: str, clause: str) -> str:
    if table and any(fnmatchcase(parent, keyspace) for parent, _ in existing):
        tables = {name for parent, name in existing if name not in ("", OTHERS) and fnmatchcase(parent, keyspace)}
        return f"no table '{table}' in keyspace '{keyspace}'{clause} has {_listed(tables)}"
    keyspaces = {name for name, _ in existing}
    # Cassandra's own keyspaces are listed only if there are no others.
    listed = {name for name in keyspaces if not is_system_keyspace(name)} or keyspaces
    return f"no keyspace '{keyspace}': {owner} has {_listed(listed)}"


def _listed(names: Collection[str]) -> str:
    ordered = sorted(names)
    more = f" and {len(ordered) - MAX_NAMES} more" if len(ordered) > MAX_NAMES else ""
    return one_line(", ".join(ordered[:MAX_NAMES]) or "none") + more


def missing_port_message(port: int, local_nodes: Sequence[LocalNode]) -> str:
    """Return the message for a JMX port that no Cassandra process on this machine uses.

    Returns "" if a process uses the port, if there are no Cassandra processes, or if any of their ports is unknown.
    """
    ports = [node.jmx_port for node in local_nodes]
    if not ports or port in ports or None in ports:
        return ""
    named = ", ".join(f"{node.jmx_port} (process {node.pid})" for node in local_nodes)
    return f"JMX port {port}: not used by any Cassandra process on this machine; in use: {named} {PORT_HINT}"

"""Messages for keyspaces, tables and ports that do not exist, with the existing ones."""

from collections.abc import Collection, Sequence

from collector.cassandra.tables import is_system_keyspace
from collector.host.cassandra_processes import LocalNode
from collector.printable import one_line
from collector.sampling.selection import Table

MOST_NAMES = 20
HINT = "hint: --wait waits for it"


def missing_keyspace_message(keyspace: str, table: str, existing: Collection[Table]) -> str:
    """Return the message for a keyspace or table that is not among the `existing` ones of a node."""
    tables = {name for parent, name in existing if name and parent == keyspace}
    if table and tables:
        return f"no table '{table}' in keyspace '{keyspace}': it has {_listed(tables)} ({HINT})"
    keyspaces = {name for name, _ in existing}
    # Cassandra's own keyspaces are listed only if there are no others.
    listed = {name for name in keyspaces if not is_system_keyspace(name)} or keyspaces
    return f"no keyspace '{keyspace}': the node has {_listed(listed)} ({HINT})"


def _listed(names: Collection[str]) -> str:
    ordered = sorted(names)
    more = f" and {len(ordered) - MOST_NAMES} more" if len(ordered) > MOST_NAMES else ""
    return one_line(", ".join(ordered[:MOST_NAMES])) + more


def missing_port_message(port: int, local_nodes: Sequence[LocalNode]) -> str:
    """Return the message for a JMX port that no Cassandra process on this machine uses.

    Returns "" if there is no process, or one with an unknown port.
    """
    ports = [node.jmx_port for node in local_nodes]
    if not ports or port in ports or None in ports:
        return ""
    named = ", ".join(f"{node.jmx_port} (process {node.pid})" for node in local_nodes)
    return f"JMX port {port}: not used by a Cassandra process on this machine; used are {named} ({HINT})"

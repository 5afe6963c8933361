"""What was asked for and does not exist: messages that name what there is."""

from collections.abc import Collection, Sequence

from collector.cassandra.tables import is_system_keyspace
from collector.host.cassandra_processes import LocalNode
from collector.printable import one_line
from collector.sampling.selection import Table

MOST_NAMES = 20


def keyspace_text(keyspace: str, table: str, known: Collection[Table]) -> str:
    """Return a message about a keyspace or table that a node with these `known` ones does not have."""
    tables = {name for where, name in known if name and where == keyspace}
    if table and tables:
        return f"keyspace '{keyspace}' has no table '{table}'; there are {_listed(tables)} (--wait waits for it)"
    keyspaces = {name for name, _ in known}
    # List Cassandra's own keyspaces only where there are no others.
    shown = {name for name in keyspaces if not is_system_keyspace(name)} or keyspaces
    return f"no keyspace '{keyspace}'; there are {_listed(shown)} (--wait waits for it)"


def _listed(names: Collection[str]) -> str:
    ordered = sorted(names)
    more = f" and {len(ordered) - MOST_NAMES} more" if len(ordered) > MOST_NAMES else ""
    return one_line(", ".join(ordered[:MOST_NAMES])) + more


def port_text(port: int, here: Sequence[LocalNode]) -> str:
    """Return a message about a JMX port that none of the Cassandra processes on this machine has; "" where one may."""
    ports = [node.jmx_port for node in here]
    if not ports or port in ports or None in ports:
        return ""
    named = ", ".join(f"{node.jmx_port} (process {node.pid})" for node in here)
    return f"no Cassandra process here has JMX port {port}; there are {named} (--wait waits for it)"

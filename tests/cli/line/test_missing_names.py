"""Messages about keyspaces, tables and ports that do not exist."""

import pytest

from cli.line.line_program import missing_keyspace_message, missing_port_message
from collector.node.host.cassandra_processes import LocalNode

EXISTING = {("ks", ""), ("ks", "t1"), ("ks", "t2"), ("system", ""), ("system", "local")}


def test_the_message_for_a_missing_keyspace_lists_user_keyspaces() -> None:
    assert (
        missing_keyspace_message("x", "", EXISTING)
        == "no keyspace 'x': the node has ks (hint: use --wait if it does not exist yet)"
    )
    assert (
        missing_keyspace_message("x", "", {("system", "")})
        == "no keyspace 'x': the node has system (hint: use --wait if it does not exist yet)"
    )


def test_the_message_for_a_missing_table_lists_the_tables_of_its_keyspace() -> None:
    assert (
        missing_keyspace_message("ks", "x", EXISTING)
        == "no table 'x' in keyspace 'ks', which has t1, t2 (hint: use --wait if it does not exist yet)"
    )


def test_long_lists_are_truncated_and_control_characters_replaced() -> None:
    many = {(f"k{number:03}", "") for number in range(500)} | {("\x1b[2J", "")}
    text = missing_keyspace_message("x", "", many)
    assert text.isprintable()
    assert text.endswith("k018 and 481 more (hint: use --wait if it does not exist yet)")


@pytest.mark.parametrize(
    ("ports", "named"),
    [
        ([], ""),
        ([7199], "7199 (process 1)"),
        ([7199, 7299], "7199 (process 1), 7299 (process 2)"),
        ([7200], ""),
        ([7199, None], ""),
    ],
)
def test_the_message_for_a_wrong_port_lists_the_ports_in_use(ports: list[int | None], named: str) -> None:
    local_nodes = [LocalNode(number, 0.0, jmx_port=port) for number, port in enumerate(ports, 1)]
    text = missing_port_message(7200, local_nodes)
    prefix = "JMX port 7200: not used by any Cassandra process on this machine; in use:"
    assert text == (f"{prefix} {named} (hint: use --wait if the node has not started yet)" if named else "")

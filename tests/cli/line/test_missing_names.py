"""Messages about keyspaces, tables and ports that do not exist."""

import pytest

from cli.line.missing_names import keyspace_text, port_text
from collector.host.cassandra_processes import LocalNode

KNOWN = {("ks", ""), ("ks", "t1"), ("ks", "t2"), ("system", ""), ("system", "local")}


def test_a_missing_keyspace_lists_the_others_but_cassandras_own() -> None:
    assert keyspace_text("x", "", KNOWN) == "no keyspace 'x'; there are ks (--wait waits for it)"
    assert keyspace_text("x", "", {("system", "")}) == "no keyspace 'x'; there are system (--wait waits for it)"


def test_a_missing_table_lists_those_of_its_keyspace() -> None:
    assert keyspace_text("ks", "x", KNOWN) == "keyspace 'ks' has no table 'x'; there are t1, t2 (--wait waits for it)"


def test_a_long_list_is_cut_and_names_steer_no_terminal() -> None:
    many = {(f"k{number:03}", "") for number in range(500)} | {("\x1b[2J", "")}
    text = keyspace_text("x", "", many)
    assert text.isprintable()
    assert text.endswith("k018 and 481 more (--wait waits for it)")


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
def test_a_wrong_port_names_those_of_the_processes_here(ports: list[int | None], named: str) -> None:
    here = [LocalNode(number, 0.0, jmx_port=port) for number, port in enumerate(ports, 1)]
    text = port_text(7200, here)
    expected = f"no Cassandra process here has JMX port 7200; there are {named} (--wait waits for it)" if named else ""
    assert text == expected

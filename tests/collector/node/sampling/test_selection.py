"""The selection of metrics, keyspaces and tables."""

from collections.abc import Iterable

import pytest

from collector.node.catalogue import BEANS
from collector.node.metrics.tables import EVERY_TICK, REMAINDERS
from collector.node.selection import Selection
from tests.collector import nodes
from tests.collector.nodes import Node, real_keyspace, real_table, table
from tests.every import every

TABLES = [("ks", "t1"), ("ks", "t2"), ("other", "t1"), ("system", "local"), ("system_auth", "roles")]


def node(selection: Selection) -> Node:
    return Node(
        [nodes.SSTABLES, nodes.SIZE, nodes.READS, nodes.ACTIVE, nodes.REQUESTS],
        nodes.requests(),
        nodes.pool("ReadStage"),
        *(table(keyspace, name) for keyspace, name in TABLES),
        selection=selection,
    )


def read(watched: Node, ticks: Iterable[int] = range(1)) -> set[tuple[str, ...]]:
    return {series for _ in ticks for series in watched.tick().values if not series[0].startswith("cassandra_")}


GENERAL = {("requests_total", "Read"), ("requests_total", "Write"), ("pool_active", "request", "ReadStage")}


def of_table(keyspace: str, name: str) -> set[tuple[str, ...]]:
    return {("table_sstables", keyspace, name), ("table_bytes", keyspace, name)}


def of_keyspace(keyspace: str) -> set[tuple[str, ...]]:
    return {("keyspace_reads_total", keyspace)}


def test_without_a_selection_no_table_is_read() -> None:
    assert read(node(Selection()), range(70)) == {*GENERAL, *of_keyspace("ks"), *of_keyspace("other")}


def test_within_the_budget_all_tables_except_system_tables_are_read() -> None:
    assert read(node(Selection(tables=3))) == {
        *GENERAL,
        *of_keyspace("ks"),
        *of_table("ks", "t1"),
        *of_table("ks", "t2"),
        *of_keyspace("other"),
        *of_table("other", "t1"),
    }


def test_only_operations_are_read_on_every_tick_for_tables_not_selected_by_name() -> None:
    watched = Node(BEANS, *(real_table("ks", name) for name in ("t1", "t2")), selection=Selection(tables=2))
    seconds: dict[str, list[int]] = {}
    for second in range(130):
        for name in {series[0] for series in watched.tick().values if series[1:3] == ("ks", "t1")}:
            seconds.setdefault(name, []).append(second)
    assert {name for name, at in seconds.items() if at == list(range(130))} == EVERY_TICK
    rare = {name: at for name, at in seconds.items() if name not in EVERY_TICK}
    assert rare
    assert all(2 <= len(at) <= 5 for at in rare.values())


def test_keyspaces_not_selected_by_name_are_read_every_ten_seconds() -> None:
    watched = Node(BEANS, real_keyspace("ks"), selection=Selection())
    metrics_read = [{series[0] for series in watched.tick().values if series[1:2] == ("ks",)} for _ in range(25)]
    assert [second for second, names in enumerate(metrics_read) if set(REMAINDERS) <= names] == [0, 10, 20]
    assert "cassandra_keyspace_operation_duration_seconds" in metrics_read[0]
    assert not any("cassandra_keyspace_operation_duration_seconds" in names for names in metrics_read[1:25])


def test_a_user_keyspace_may_have_a_name_like_a_system_keyspace() -> None:
    watched = node(Selection(tables=4))
    watched.add(table("systems", "t1"))
    assert read(watched) >= {*of_keyspace("systems"), *of_table("systems", "t1")}


def test_only_a_selected_keyspace_is_read_on_every_tick() -> None:
    watched = node(Selection(keyspace="ks", tables=10))
    assert read(watched) == {*GENERAL, *of_keyspace("ks"), *of_table("ks", "t1"), *of_table("ks", "t2")}
    assert read(watched) == {*GENERAL, *of_keyspace("ks")}


def test_all_metrics_of_tables_selected_by_name_are_read_at_their_scrape_intervals() -> None:
    watched = node(Selection(keyspace="ks", table="*"))
    assert read(watched) == {*GENERAL, *of_keyspace("ks"), *of_table("ks", "t1"), *of_table("ks", "t2")}
    assert read(watched) == {
        *GENERAL,
        *of_keyspace("ks"),
        ("table_sstables", "ks", "t1"),
        ("table_sstables", "ks", "t2"),
    }


def test_a_selected_table_and_its_keyspace_are_read_and_other_tables_are_not() -> None:
    assert read(node(Selection(keyspace="ks", table="t2"))) == {*GENERAL, *of_keyspace("ks"), *of_table("ks", "t2")}


def test_other_tables_are_read_within_the_budget() -> None:
    watched = node(Selection(keyspace="ks", table="t2", tables=1))
    assert read(watched) == {*GENERAL, *of_keyspace("ks"), *of_table("ks", "t1"), *of_table("ks", "t2")}
    assert read(watched) == {*GENERAL, *of_keyspace("ks"), ("table_sstables", "ks", "t2")}


@every(
    ("keyspace", "table_name", "expected"),
    [
        ("k*", "t1", {("ks", "t1")}),
        ("*", "t?", {("ks", "t1"), ("ks", "t2"), ("other", "t1")}),
        ("[ko]*", "t1", {("ks", "t1"), ("other", "t1")}),
        ("system*", "*", {("system", "local"), ("system_auth", "roles")}),
        ("k", "t1", set()),
        ("KS", "t1", set()),
        ("ks", "T1", set()),
    ],
)
def test_patterns_select_keyspaces_and_tables(keyspace: str, table_name: str, expected: set[tuple[str, str]]) -> None:
    metrics_read = read(node(Selection(keyspace=keyspace, table=table_name)))
    assert {(series[1], series[2]) for series in metrics_read if series[0] == "table_sstables"} == expected


def test_a_system_keyspace_is_read_when_selected() -> None:
    assert read(node(Selection(keyspace="system_auth", tables=1))) >= of_table("system_auth", "roles")


def test_only_selected_metrics_are_read() -> None:
    wanted = frozenset({"requests_total", "table_sstables"})
    watched = node(Selection(metrics=wanted, keyspace="ks", table="t1"))
    assert read(watched) == {
        ("requests_total", "Read"),
        ("requests_total", "Write"),
        ("table_sstables", "ks", "t1"),
    }
    assert watched.source.provides("requests_total")
    assert not watched.source.provides("pool_active")


def test_unselected_metrics_are_not_searched_for() -> None:
    watched = node(Selection(metrics=frozenset({"requests_total"})))
    for _ in range(70):
        watched.tick()
    assert watched.jolokia.searches() == []


def test_start_time_and_schema_version_are_always_read() -> None:
    watched = node(Selection(metrics=frozenset({"requests_total"})))
    for _ in range(3):
        scrape = watched.tick()
        assert {("cassandra_jvm_start_time_seconds",), ("cassandra_schema_version",)} <= set(scrape.values)
        assert scrape.origin


@pytest.mark.parametrize(("keyspace", "table_name"), [("nosuch", ""), ("ks", "nosuch")])
def test_missing_keyspaces_and_tables_are_not_requested(keyspace: str, table_name: str) -> None:
    watched = node(Selection(keyspace=keyspace, table=table_name))
    watched.tick()
    assert not watched.source.provides("table_sstables")


def test_a_selected_keyspace_created_later_is_read() -> None:
    watched = node(Selection(keyspace="later", table="*"))
    read(watched, range(5))
    watched.add(table("later", "t1"))
    watched.alter()
    read(watched)
    assert read(watched) >= {*of_keyspace("later"), *of_table("later", "t1")}

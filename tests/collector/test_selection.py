"""What of the catalogue is wanted, by metric, keyspace and table."""

from collections.abc import Iterable

import pytest

from collector.jmx import Selection
from tests.collector.nodes import (
    ACTIVE,
    READS,
    REQUESTS,
    SIZE,
    SSTABLES,
    Node,
    pool,
    requests,
    table,
)

TABLES = [("ks", "t1"), ("ks", "t2"), ("other", "t1"), ("system", "local"), ("system_auth", "roles")]


def node(selection: Selection) -> Node:
    return Node(
        [SSTABLES, SIZE, READS, ACTIVE, REQUESTS],
        requests(),
        pool("ReadStage"),
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


def test_without_a_choice_all_but_cassandras_own_tables_are_read() -> None:
    assert read(node(Selection())) == {
        *GENERAL,
        *of_keyspace("ks"),
        *of_table("ks", "t1"),
        *of_table("ks", "t2"),
        *of_keyspace("other"),
        *of_table("other", "t1"),
    }


def test_without_a_choice_tables_are_read_once_a_minute() -> None:
    watched = node(Selection())
    read(watched)
    assert read(watched, range(20)) == GENERAL


def test_a_keyspace_of_ones_own_may_have_a_name_like_cassandras() -> None:
    watched = node(Selection())
    watched.add(table("systems", "t1"))
    assert read(watched) >= {*of_keyspace("systems"), *of_table("systems", "t1")}


def test_a_chosen_keyspace_is_read_every_tick_and_no_other_is_read() -> None:
    watched = node(Selection(keyspace="ks"))
    assert read(watched) == {*GENERAL, *of_keyspace("ks"), *of_table("ks", "t1"), *of_table("ks", "t2")}
    assert read(watched) == {
        *GENERAL,
        *of_keyspace("ks"),
        ("table_sstables", "ks", "t1"),
        ("table_sstables", "ks", "t2"),
    }


def test_of_a_chosen_table_and_its_keyspace_all_is_read_and_of_its_neighbours_nothing() -> None:
    assert read(node(Selection(keyspace="ks", table="t2"))) == {*GENERAL, *of_keyspace("ks"), *of_table("ks", "t2")}


def test_cassandras_own_keyspace_is_read_when_it_is_chosen() -> None:
    assert read(node(Selection(keyspace="system_auth"))) >= of_table("system_auth", "roles")


def test_only_chosen_metrics_are_read() -> None:
    wanted = frozenset({"requests_total", "table_sstables"})
    watched = node(Selection(metrics=wanted, keyspace="ks", table="t1"))
    assert read(watched) == {
        ("requests_total", "Read"),
        ("requests_total", "Write"),
        ("table_sstables", "ks", "t1"),
    }
    assert watched.source.asks_for("requests_total")
    assert not watched.source.asks_for("pool_active")


def test_what_is_not_chosen_is_not_searched_for() -> None:
    watched = node(Selection(metrics=frozenset({"requests_total"})))
    for _ in range(70):
        watched.tick()
    assert watched.jolokia.searches() == []


def test_start_and_schema_are_read_whatever_is_chosen() -> None:
    watched = node(Selection(metrics=frozenset({"requests_total"})))
    for _ in range(3):
        batch = watched.tick()
        assert {("cassandra_jvm_start_time_seconds",), ("cassandra_schema_version",)} <= set(batch.values)
        assert batch.origin


@pytest.mark.parametrize(("keyspace", "table_name"), [("nosuch", ""), ("ks", "nosuch")])
def test_a_keyspace_or_table_that_is_not_there_is_not_asked_for(keyspace: str, table_name: str) -> None:
    watched = node(Selection(keyspace=keyspace, table=table_name))
    watched.tick()
    assert not watched.source.asks_for("table_sstables")


def test_a_keyspace_made_later_is_read_from_then_on() -> None:
    watched = node(Selection(keyspace="later"))
    read(watched, range(5))
    watched.add(table("later", "t1"))
    watched.alter()
    read(watched)
    assert read(watched) >= {*of_keyspace("later"), *of_table("later", "t1")}

"""The MBean source: the requests that it sends on each tick, and the values that it takes from the responses."""

from collections.abc import Callable
from itertools import pairwise

import pytest

from collector.model.snapshot import SourceError
from collector.node.jolokia.mbean_source import RARE_PER_TICK
from collector.node.jolokia.table_budget import OTHERS
from collector.node.metrics import storage, tables
from collector.node.selection import Selection
from tests.collector.nodes import (
    ACTIVE,
    COMPACTIONS,
    DURATIONS,
    KEYSPACE,
    PENDING,
    POOL,
    READS,
    REQUESTS,
    SERVICE,
    SIZE,
    SSTABLES,
    TABLE,
    Node,
    pool,
    real_keyspace,
    real_table,
    requests,
    table,
)
from tests.every import every

KEYSPACE_PREFIX, BUSY_PREFIX = KEYSPACE.format(keyspace="ks"), TABLE.format(keyspace="ks", table="busy")
READ_STAGE = POOL.format(path="request", pool="ReadStage") + "ActiveTasks"


def size_of(name: str) -> str:
    return TABLE.format(keyspace="ks", table=name) + "LiveDiskSpaceUsed"


def test_the_first_tick_reads_all_metrics() -> None:
    node = Node([REQUESTS, DURATIONS, ACTIVE, SSTABLES, SIZE], requests(), pool("ReadStage"), table("ks", "t1"))
    scrape = node.tick()
    assert scrape.source == "cassandra"
    assert scrape.problem == ""
    assert (
        scrape.values.items()
        >= {
            ("requests_total", "Read"): 100,
            ("requests_total", "Write"): 100,
            ("request_seconds", "Read"): (0,) * 128,
            ("pool_active", "request", "ReadStage"): 2,
            ("table_sstables", "ks", "t1"): 3,
            ("table_bytes", "ks", "t1"): 4096,
            ("cassandra_jvm_start_time_seconds",): 1_700_000_000_000,
            ("cassandra_schema_version",): "v1",
        }.items()
    )


def test_members_and_peers_come_from_the_storage_service() -> None:
    counts = [bean for bean in storage.BEANS if bean.metric.name.startswith("cassandra_endpoints_")]
    node = Node(counts)
    node.jolokia.beans[SERVICE] |= {
        "LiveNodes": ["10.0.0.1", "10.0.0.2"],
        "UnreachableNodes": ["10.0.0.3"],
        "EndpointToHostId": {"/10.0.0.2": "b", "host/10.0.0.1": "a"},
    }
    assert node.source.members == frozenset()
    node.tick()
    assert node.source.members == {"10.0.0.1", "10.0.0.2", "10.0.0.3"}
    assert node.source.peers(1.0) == ("10.0.0.1", "10.0.0.2")
    node.jolokia.beans[SERVICE]["EndpointToHostId"] = "ERROR: refused"
    with pytest.raises(SourceError, match="the EndpointToHostId attribute is missing or malformed"):
        node.source.peers(1.0)


def test_a_scrape_has_the_time_of_the_response() -> None:
    node = Node([REQUESTS], requests(), takes_s=0.25)
    node.tick()
    began_s = node.clock.monotonic_s()
    assert node.tick().at_s == pytest.approx(began_s + 0.25)


def test_a_jvm_restart_changes_the_origin() -> None:
    node = Node([REQUESTS], requests())
    first, second = node.tick().origin, node.tick().origin
    node.restart()
    assert first == second != ""
    assert node.tick().origin not in ("", first)


def test_fixed_names_are_not_searched_for() -> None:
    node = Node([REQUESTS, DURATIONS, COMPACTIONS], requests())
    node.tick()
    rounds = len(node.jolokia.rounds)
    for _ in range(120):
        node.tick()
    assert node.jolokia.searches() == []
    assert len(node.jolokia.rounds) == rounds + 120


def test_mbeans_with_the_same_labels_share_a_search() -> None:
    node = Node([SSTABLES, SIZE, ACTIVE, REQUESTS], table("ks", "t1"), pool("ReadStage"), requests())
    node.tick()
    assert sorted(len(patterns) for patterns in node.jolokia.searches()) == [2]


def test_after_the_start_all_names_except_tables_are_searched_for_once_a_minute() -> None:
    node = Node([SSTABLES, READS, ACTIVE], table("ks", "t1"), pool("ReadStage"))
    for _ in range(130):
        node.tick()
    assert any("keyspace=" in pattern for patterns in node.jolokia.searches() for pattern in patterns)
    node.jolokia.rounds.clear()
    for _ in range(600):
        node.tick()
    searches = node.jolokia.searches()
    assert 9 <= len(searches) <= 11
    assert not any("keyspace=" in pattern for patterns in searches for pattern in patterns)


def test_searches_are_repeated_a_few_times_after_the_start() -> None:
    node = Node([SSTABLES, ACTIVE], table("ks", "t1"), pool("ReadStage"))
    for _ in range(60):
        node.tick()
    assert 2 <= len(node.jolokia.searches()) <= 7


def test_slow_searches_are_repeated_only_once_after_the_start() -> None:
    node = Node([SSTABLES, ACTIVE], table("ks", "t1"), pool("ReadStage"))
    node.jolokia.takes_s = 0.4
    for _ in range(150):
        node.tick()
    first, *later = node.jolokia.searches()
    assert len(first) == 2
    assert [["keyspace=" in pattern for pattern in patterns] for patterns in later] == [[True]]


@pytest.mark.parametrize(("takes_s", "ticks"), [(0.0, 4), (0.1, 10), (0.4, 40)])
def test_a_table_created_during_the_first_search_is_found_without_a_schema_change(takes_s: float, ticks: int) -> None:
    node = Node([SSTABLES], table("ks", "t1"), selection=Selection(keyspace="ks", table="*"))
    node.jolokia.takes_s = takes_s
    node.tick()
    node.add(table("ks", "t2"))
    is_read = [("table_sstables", "ks", "t2") in node.tick().values for _ in range(ticks)]
    assert is_read[-1]


def test_continuous_schema_changes_do_not_cause_continuous_searches() -> None:
    node = Node([SSTABLES], table("ks", "t1"))
    node.jolokia.takes_s = 0.4
    for _ in range(60):
        node.alter()
        node.tick()
    assert 5 <= len(node.jolokia.searches()) <= 10


@pytest.mark.parametrize("ticks_before", [1, 200])
def test_a_schema_change_searches_only_for_tables(ticks_before: int) -> None:
    node = Node([SSTABLES, ACTIVE], table("ks", "t1"), pool("ReadStage"))
    for _ in range(ticks_before):
        node.tick()
    node.alter()
    node.tick()
    node.jolokia.rounds.clear()
    node.tick(3)
    assert node.jolokia.searches()
    assert all("keyspace=" in pattern for patterns in node.jolokia.searches() for pattern in patterns)


def test_an_mbean_registered_on_first_use_is_found_within_65_s() -> None:
    node = Node([ACTIVE], pool("ReadStage"))
    for _ in range(200):
        node.tick()
    node.add(pool("ViewMutationStage"))
    is_read = [("pool_active", "request", "ViewMutationStage") in node.tick().values for _ in range(65)]
    assert is_read[-1]


def test_a_missing_mbean_is_retried_at_growing_intervals() -> None:
    node = Node([COMPACTIONS, REQUESTS], requests())
    times = node.read_times(PENDING, 400)
    assert times[0] == 0.0
    assert [later - earlier for earlier, later in pairwise(times)][:9] == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_an_mbean_that_appears_is_read_on_every_tick() -> None:
    node = Node([COMPACTIONS])
    node.read_times(PENDING, 10)
    node.add({PENDING: {"Value": 5}})
    assert node.read_times(PENDING, 10) == [5, 6, 7, 8, 9]
    del node.jolokia.beans[PENDING]
    assert node.read_times(PENDING, 8) == [0, 1, 3, 7]


def test_a_missing_attribute_does_not_delay_other_mbeans() -> None:
    node = Node([COMPACTIONS, REQUESTS], requests(), {PENDING: {"Other": 5}})
    for _ in range(5):
        assert ("requests_total", "Read") in node.tick().values


def test_slow_metrics_are_spread_over_the_minute() -> None:
    names = [f"t{number}" for number in range(120)]
    node = Node([SIZE, REQUESTS], requests(), *(table("ks", name) for name in names))
    read_seconds: dict[str, list[int]] = {size_of(name): [] for name in names}
    per_tick = []
    for second in range(300):
        node.tick()
        rare = [name for name in node.jolokia.last_read() if name in read_seconds]
        per_tick.append(len(rare))
        for name in rare:
            read_seconds[name].append(second)
    assert per_tick[0] == len(names)
    assert max(per_tick[1:]) <= len(names) / 10
    for times in read_seconds.values():
        assert len(times) >= 5
        assert all(25 <= later - earlier <= 61 for earlier, later in pairwise(times))


def test_at_a_one_minute_interval_slow_metrics_are_read_on_every_tick() -> None:
    node = Node([SIZE], table("ks", "t1"), takes_s=0.005)
    assert node.read_times(size_of("t1"), 6, interval_s=60.0) == [0, 60, 120, 180, 240, 300]


def test_the_number_of_slow_metrics_per_tick_is_limited() -> None:
    names = [f"t{number}" for number in range(2 * RARE_PER_TICK + 50)]
    node = Node([SIZE, REQUESTS], requests(), *(table("ks", name) for name in names))
    scrapes = [node.tick() for _ in range(3)]
    rare = [sum(series[0] == "table_bytes" for series in scrape.values) for scrape in scrapes]
    assert rare == [RARE_PER_TICK, RARE_PER_TICK, 50]
    assert all(("requests_total", "Read") in scrape.values for scrape in scrapes)
    assert len({series for scrape in scrapes for series in scrape.values if series[0] == "table_bytes"}) == len(names)


@pytest.mark.parametrize("slow", [20, 25, 30])
def test_operations_during_a_slow_response_are_counted_once(slow: int) -> None:
    beans = real_keyspace("ks") | real_table("ks", "busy") | real_table("ks", "idle")
    node = Node(tables.BEANS, beans, requests(), selection=Selection(tables=1))
    counts = [beans[prefix + "ReadLatency"] for prefix in (KEYSPACE_PREFIX, BUSY_PREFIX)]

    def work() -> None:
        for attributes in counts:
            attributes["Count"] += 1

    others = []
    for second in range(40):
        work()
        node.jolokia.meanwhile = work if second == slow else lambda: None
        others.append(node.tick().values.get(("cassandra_table_operations_total", "ks", OTHERS, "Read")))
    # One operation took place before the busy table was found, so it belongs to the remainder.
    assert [count for count in others if count is not None] == [0, 1, 1, 1]


def test_names_are_searched_for_again_after_a_restart() -> None:
    node = Node([SSTABLES], table("ks", "t1"))
    for _ in range(100):
        node.tick()
    node.restart()
    node.add(table("ks", "t2"))
    node.tick()
    assert ("table_sstables", "ks", "t2") in node.tick(60).values


def test_missing_mbeans_are_retried_at_once_after_a_restart() -> None:
    node = Node([COMPACTIONS], requests())
    for _ in range(130):
        node.tick()
    assert node.read_times(PENDING, 10) == []
    node.restart()
    node.tick()
    assert node.read_times(PENDING, 1) == [0]


def test_a_slowly_starting_node_is_read_soon_after_its_schema_is_loaded() -> None:
    node = Node([REQUESTS], requests())
    schema = "org.apache.cassandra.db:type=StorageService"
    running_beans = dict(node.jolokia.beans)
    for _ in range(10):
        node.tick()
    node.restart()
    for name in [*requests(), schema]:
        node.jolokia.beans.pop(name)
    for _ in range(30):
        with pytest.raises(SourceError, match="not a Cassandra node"):
            node.tick()
    node.add({schema: running_beans[schema]})
    node.tick()
    node.add(requests())
    assert ("requests_total", "Read") in [*node.tick().values, *node.tick().values]


def test_a_table_that_appears_shortly_after_a_schema_change_is_found() -> None:
    node = Node([SSTABLES], table("ks", "t1"), selection=Selection(keyspace="ks", table="*"))
    for _ in range(200):
        node.tick()
    node.alter()
    for _ in range(5):
        node.tick()
    node.add(table("ks", "t2"))
    is_read = [("table_sstables", "ks", "t2") in node.tick().values for _ in range(10)]
    assert is_read[-1]


@pytest.mark.parametrize("ticks_before", [1, 3, 100])
def test_a_new_table_is_read_after_a_schema_change(ticks_before: int) -> None:
    node = Node([SSTABLES, SIZE], table("ks", "t1"), selection=Selection(keyspace="ks", table="*"))
    for _ in range(ticks_before):
        node.tick()
    node.add(table("ks", "t2"))
    node.alter()
    node.tick()
    assert ("table_sstables", "ks", "t2") in node.tick().values


def test_a_dropped_table_is_no_longer_read() -> None:
    node = Node([SSTABLES], table("ks", "t1"), table("ks", "t2"), selection=Selection(keyspace="ks", table="*"))
    node.tick()
    for name in table("ks", "t2"):
        del node.jolokia.beans[name]
    node.alter()
    node.tick()
    node.tick()
    assert len([name for name in node.jolokia.last_read() if "type=Table" in name]) == 1


def test_a_schema_change_does_not_advance_slow_metrics() -> None:
    node = Node([SIZE], table("ks", "t1"))
    node.tick()
    node.alter()
    node.tick()
    node.tick()
    assert size_of("t1") not in node.jolokia.last_read()


@every("change", [Node.alter, Node.restart])
@every("ticks_before", [1, 3, 200])
def test_a_failed_search_after_a_change_is_repeated(change: Callable[[Node], None], ticks_before: int) -> None:
    node = Node([SSTABLES], table("ks", "t1"), selection=Selection(keyspace="ks", table="*"))
    for _ in range(ticks_before):
        node.tick()
    node.add(table("ks", "t2"))
    change(node)
    node.jolokia.refusing = "not now"
    assert "not now" in node.tick().problem
    node.jolokia.refusing = ""
    for _ in range(3):
        scrape = node.tick()
    assert ("table_sstables", "ks", "t2") in scrape.values


def test_a_failed_search_does_not_affect_values() -> None:
    node = Node([SSTABLES, REQUESTS], table("ks", "t1"), requests())
    node.tick()
    node.alter()
    node.jolokia.refusing = "not now"
    scrape = node.tick()
    assert scrape.problem
    assert ("requests_total", "Read") in scrape.values


def test_a_refused_search_is_a_one_line_error() -> None:
    node = Node([SSTABLES], table("ks", "t1"))
    node.jolokia.refusing = "java.lang.SecurityException:\n  search is not allowed\r\n  by policy"
    with pytest.raises(SourceError) as raised:
        node.tick()
    assert "not allowed" in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.parametrize("name", ["other:type=A", "nonsense", "", "org.apache.cassandra.metrics:keyspace=ks"])
def test_names_that_do_not_match_the_search_are_ignored(name: str) -> None:
    node = Node([SSTABLES, REQUESTS], requests())
    node.jolokia.finds = [name]
    assert ("requests_total", "Read") in node.tick().values
    assert not node.source.provides("table_sstables")


def test_a_jolokia_agent_in_another_program_is_an_error() -> None:
    node = Node([REQUESTS])
    node.jolokia.beans.clear()
    with pytest.raises(SourceError, match="not a Cassandra node"):
        node.tick()


def test_a_node_is_read_again_after_an_outage() -> None:
    node = Node([REQUESTS, SSTABLES], requests(), table("ks", "t1"))
    node.jolokia.down = True
    for _ in range(3):
        with pytest.raises(SourceError, match="refused"):
            node.tick()
    node.jolokia.down = False
    assert ("table_sstables", "ks", "t1") in node.tick().values
    node.jolokia.down = True
    with pytest.raises(SourceError):
        node.tick()
    node.jolokia.down = False
    assert ("requests_total", "Read") in node.tick().values

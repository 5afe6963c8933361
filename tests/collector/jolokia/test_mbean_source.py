"""The node as a source: what is asked when, and what follows from the answers."""

from collections.abc import Callable
from itertools import pairwise

import pytest

from collector.cassandra import storage, tables
from collector.jolokia.mbean_source import RARE_PER_TICK
from collector.jolokia.table_budget import OTHERS
from collector.model.metric import ScrapeInterval
from collector.model.snapshot import SourceError
from collector.sampling.selection import Selection
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
    SNAPSHOTS,
    SSTABLES,
    TABLE,
    Node,
    pool,
    real_keyspace,
    real_table,
    requests,
    table,
)

KEYSPACE_PREFIX, BUSY_PREFIX = KEYSPACE.format(keyspace="ks"), TABLE.format(keyspace="ks", table="busy")
READ_STAGE = POOL.format(path="request", pool="ReadStage") + "ActiveTasks"


def size_of(name: str) -> str:
    return TABLE.format(keyspace="ks", table=name) + "LiveDiskSpaceUsed"


def test_the_first_read_brings_everything() -> None:
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


def test_a_node_names_its_members_and_the_peers_in_its_ring() -> None:
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
    with pytest.raises(SourceError, match="no usable EndpointToHostId"):
        node.source.peers(1.0)


def test_a_batch_is_stamped_when_the_answer_came() -> None:
    node = Node([REQUESTS], requests(), takes_s=0.25)
    node.tick()
    began_s = node.clock.monotonic_s()
    assert node.tick().at_s == pytest.approx(began_s + 0.25)


def test_counters_count_from_the_start_of_the_jvm() -> None:
    node = Node([REQUESTS], requests())
    first, second = node.tick().origin, node.tick().origin
    node.restart()
    assert first == second != ""
    assert node.tick().origin not in ("", first)


def test_nothing_is_searched_for_that_is_known_beforehand() -> None:
    node = Node([REQUESTS, DURATIONS, COMPACTIONS], requests())
    node.tick()
    rounds = len(node.jolokia.rounds)
    for _ in range(120):
        node.tick()
    assert node.jolokia.searches() == []
    assert len(node.jolokia.rounds) == rounds + 120


def test_beans_that_exist_for_the_same_labels_are_searched_for_once() -> None:
    node = Node([SSTABLES, SIZE, ACTIVE, REQUESTS], table("ks", "t1"), pool("ReadStage"), requests())
    node.tick()
    assert sorted(len(patterns) for patterns in node.jolokia.searches()) == [2]


def test_a_node_in_its_stride_is_searched_once_a_minute_and_its_tables_not_at_all() -> None:
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


def test_at_first_names_are_searched_for_a_few_times() -> None:
    node = Node([SSTABLES, ACTIVE], table("ks", "t1"), pool("ReadStage"))
    for _ in range(60):
        node.tick()
    assert 2 <= len(node.jolokia.searches()) <= 7


def test_where_searches_take_long_they_are_made_once_more_and_then_not_for_a_long_while() -> None:
    node = Node([SSTABLES, ACTIVE], table("ks", "t1"), pool("ReadStage"))
    node.jolokia.takes_s = 0.4
    for _ in range(150):
        node.tick()
    first, *later = node.jolokia.searches()
    assert len(first) == 2
    assert [["keyspace=" in pattern for pattern in patterns] for patterns in later] == [[True]]


@pytest.mark.parametrize(("takes_s", "ticks"), [(0.0, 4), (0.1, 10), (0.4, 40)])
def test_a_table_that_appears_at_first_contact_is_found_though_the_schema_is_that_of_the_first_tick(
    takes_s: float, ticks: int
) -> None:
    node = Node([SSTABLES], table("ks", "t1"), selection=Selection(keyspace="ks", table="*"))
    node.jolokia.takes_s = takes_s
    node.tick()
    node.add(table("ks", "t2"))
    found = [("table_sstables", "ks", "t2") in node.tick().values for _ in range(ticks)]
    assert found[-1]


def test_a_schema_that_is_still_being_made_does_not_keep_the_node_searching() -> None:
    node = Node([SSTABLES], table("ks", "t1"))
    node.jolokia.takes_s = 0.4
    for _ in range(60):
        node.alter()
        node.tick()
    assert 5 <= len(node.jolokia.searches()) <= 10


@pytest.mark.parametrize("ticks_before", [1, 200])
def test_a_change_of_the_schema_brings_only_what_it_changes(ticks_before: int) -> None:
    node = Node([SSTABLES, ACTIVE], table("ks", "t1"), pool("ReadStage"))
    for _ in range(ticks_before):
        node.tick()
    node.alter()
    node.tick()
    node.jolokia.rounds.clear()
    node.tick(3)
    assert node.jolokia.searches()
    assert all("keyspace=" in pattern for patterns in node.jolokia.searches() for pattern in patterns)


def test_what_appears_on_first_use_is_found_within_a_minute_or_so() -> None:
    node = Node([ACTIVE], pool("ReadStage"))
    for _ in range(200):
        node.tick()
    node.add(pool("ViewMutationStage"))
    found = [("pool_active", "request", "ViewMutationStage") in node.tick().values for _ in range(65)]
    assert found[-1]


def test_what_the_node_does_not_have_is_asked_for_again_ever_more_rarely() -> None:
    node = Node([COMPACTIONS, REQUESTS], requests())
    times = node.read_times(PENDING, 400)
    assert times[0] == 0.0
    assert [later - earlier for earlier, later in pairwise(times)][:9] == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_what_was_missing_is_asked_for_every_tick_once_it_is_there() -> None:
    node = Node([COMPACTIONS])
    node.read_times(PENDING, 10)
    node.add({PENDING: {"Value": 5}})
    assert node.read_times(PENDING, 10) == [5, 6, 7, 8, 9]
    del node.jolokia.beans[PENDING]
    assert node.read_times(PENDING, 8) == [0, 1, 3, 7]


def test_an_attribute_that_the_version_lacks_does_not_keep_its_neighbours_waiting() -> None:
    node = Node([COMPACTIONS, REQUESTS], requests(), {PENDING: {"Other": 5}})
    for _ in range(5):
        assert ("requests_total", "Read") in node.tick().values


def test_what_is_read_once_a_minute_is_spread_over_it() -> None:
    names = [f"t{number}" for number in range(120)]
    node = Node([SIZE, REQUESTS], requests(), *(table("ks", name) for name in names))
    asked: dict[str, list[int]] = {size_of(name): [] for name in names}
    at_once = []
    for second in range(300):
        node.tick()
        rare = [name for name in node.jolokia.asked_last() if name in asked]
        at_once.append(len(rare))
        for name in rare:
            asked[name].append(second)
    assert at_once[0] == len(names)
    assert max(at_once[1:]) <= len(names) / 10
    for times in asked.values():
        assert len(times) >= 5
        assert all(25 <= later - earlier <= 61 for earlier, later in pairwise(times))


def test_what_is_read_once_a_minute_is_in_every_tick_of_a_minute() -> None:
    node = Node([SIZE], table("ks", "t1"), takes_s=0.005)
    assert node.read_times(size_of("t1"), 6, interval_s=60.0) == [0, 60, 120, 180, 240, 300]


def test_one_tick_asks_for_no_more_than_so_many_rare_things() -> None:
    names = [f"t{number}" for number in range(2 * RARE_PER_TICK + 50)]
    node = Node([SIZE, REQUESTS], requests(), *(table("ks", name) for name in names))
    scrapes = [node.tick() for _ in range(3)]
    rare = [sum(series[0] == "table_bytes" for series in scrape.values) for scrape in scrapes]
    assert rare == [RARE_PER_TICK, RARE_PER_TICK, 50]
    assert all(("requests_total", "Read") in scrape.values for scrape in scrapes)
    assert len({series for scrape in scrapes for series in scrape.values if series[0] == "table_bytes"}) == len(names)


@pytest.mark.parametrize("slow", [20, 25, 30])
def test_a_slow_answer_does_not_tell_twice_what_a_table_did_meanwhile(slow: int) -> None:
    beans = real_keyspace("ks") | real_table("ks", "busy") | real_table("ks", "idle")
    node = Node(tables.BEANS, beans, requests(), selection=Selection(tables=1))
    counts = [beans[prefix + "ReadLatency"] for prefix in (KEYSPACE_PREFIX, BUSY_PREFIX)]

    def work() -> None:
        for each in counts:
            each["Count"] += 1

    others = []
    for second in range(40):
        work()
        node.jolokia.meanwhile = work if second == slow else lambda: None
        others.append(node.tick().values.get(("cassandra_table_operations_total", "ks", OTHERS, "Read")))
    # The one is from before the busy table was found.
    assert [each for each in others if each is not None] == [0, 1, 1, 1]


def test_what_is_costly_is_never_asked_for() -> None:
    node = Node([SNAPSHOTS, SSTABLES], table("ks", "t1"))
    assert SNAPSHOTS.metric.scrape_interval is ScrapeInterval.HOURLY
    node.tick()
    assert not node.source.provides("table_snapshots_bytes")
    assert node.source.provides("table_sstables")


def test_after_a_restart_names_are_searched_for_anew() -> None:
    node = Node([SSTABLES], table("ks", "t1"))
    for _ in range(100):
        node.tick()
    node.restart()
    node.add(table("ks", "t2"))
    node.tick()
    assert ("table_sstables", "ks", "t2") in node.tick(60).values


def test_after_a_restart_what_was_missing_is_asked_for_at_once() -> None:
    node = Node([COMPACTIONS], requests())
    for _ in range(130):
        node.tick()
    assert node.read_times(PENDING, 10) == []
    node.restart()
    node.tick()
    assert node.read_times(PENDING, 1) == [0]


def test_a_node_that_takes_long_to_start_is_read_soon_after_it_has_its_schema() -> None:
    node = Node([REQUESTS], requests())
    schema = "org.apache.cassandra.db:type=StorageService"
    started, later = dict(node.jolokia.beans), 30
    for _ in range(10):
        node.tick()
    node.restart()
    for name in [*requests(), schema]:
        node.jolokia.beans.pop(name)
    for _ in range(later):
        with pytest.raises(SourceError, match="not a Cassandra node"):
            node.tick()
    node.add({schema: started[schema]})
    node.tick()
    node.add(requests())
    assert ("requests_total", "Read") in [*node.tick().values, *node.tick().values]


def test_a_table_that_appears_a_little_after_the_schema_changed_is_found() -> None:
    node = Node([SSTABLES], table("ks", "t1"), selection=Selection(keyspace="ks", table="*"))
    for _ in range(200):
        node.tick()
    node.alter()
    for _ in range(5):
        node.tick()
    node.add(table("ks", "t2"))
    found = [("table_sstables", "ks", "t2") in node.tick().values for _ in range(10)]
    assert found[-1]


@pytest.mark.parametrize("ticks_before", [1, 3, 100])
def test_a_change_of_the_schema_brings_the_new_table(ticks_before: int) -> None:
    node = Node([SSTABLES, SIZE], table("ks", "t1"), selection=Selection(keyspace="ks", table="*"))
    for _ in range(ticks_before):
        node.tick()
    node.add(table("ks", "t2"))
    node.alter()
    node.tick()
    assert ("table_sstables", "ks", "t2") in node.tick().values


def test_a_dropped_table_is_no_longer_asked_for() -> None:
    node = Node([SSTABLES], table("ks", "t1"), table("ks", "t2"), selection=Selection(keyspace="ks", table="*"))
    node.tick()
    for name in table("ks", "t2"):
        del node.jolokia.beans[name]
    node.alter()
    node.tick()
    node.tick()
    assert len([name for name in node.jolokia.asked_last() if "type=Table" in name]) == 1


def test_a_change_of_the_schema_does_not_bring_the_rest_forward() -> None:
    node = Node([SIZE], table("ks", "t1"))
    node.tick()
    node.alter()
    node.tick()
    node.tick()
    assert size_of("t1") not in node.jolokia.asked_last()


@pytest.mark.parametrize("change", [Node.alter, Node.restart])
@pytest.mark.parametrize("ticks_before", [1, 3, 200])
def test_a_search_that_failed_after_a_change_is_made_up_for(change: Callable[[Node], None], ticks_before: int) -> None:
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


def test_a_failed_search_spoils_no_values() -> None:
    node = Node([SSTABLES, REQUESTS], table("ks", "t1"), requests())
    node.tick()
    node.alter()
    node.jolokia.refusing = "not now"
    scrape = node.tick()
    assert scrape.problem
    assert ("requests_total", "Read") in scrape.values


def test_a_refused_search_is_told_in_one_line() -> None:
    node = Node([SSTABLES], table("ks", "t1"))
    node.jolokia.refusing = "java.lang.SecurityException:\n  search is not allowed\r\n  by policy"
    with pytest.raises(SourceError) as raised:
        node.tick()
    assert "not allowed" in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1


@pytest.mark.parametrize("found", ["other:type=A", "nonsense", "", "org.apache.cassandra.metrics:keyspace=ks"])
def test_names_that_do_not_fit_what_was_searched_for_are_left_out(found: str) -> None:
    node = Node([SSTABLES, REQUESTS], requests())
    node.jolokia.finds = [found]
    assert ("requests_total", "Read") in node.tick().values
    assert not node.source.provides("table_sstables")


def test_a_jolokia_of_another_program_is_told_apart() -> None:
    node = Node([REQUESTS])
    node.jolokia.beans.clear()
    with pytest.raises(SourceError, match="not a Cassandra node"):
        node.tick()


def test_a_node_that_does_not_answer_is_read_again_when_it_does() -> None:
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

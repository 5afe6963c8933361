"""The table budget: only the busiest tables are read; finding them costs little, and the choice rarely changes."""

from collections.abc import Callable
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from collector.model.metric import Values
from collector.node.jolokia.table_budget import FIRST_S, LEAD, PER_TICK, PERIOD_S, Ranking
from collector.node.selection import Selection, Table
from tests.examples import examples

COUNT = "cassandra_table_operations_total"
Rates = dict[Table, int]


def tables(number: int, keyspace: str = "ks") -> list[Table]:
    return [(keyspace, f"t{index}") for index in range(number)]


class World:
    """Simulated tables with given reads per second, and their ranking, both advanced tick by tick."""

    def __init__(self, rates: Rates, budget: int, selection: Selection | None = None) -> None:
        self.rates = dict(rates)
        self.counts = dict.fromkeys(rates, 0)
        self.ranking = Ranking(selection or Selection(tables=budget))
        self.now_s = 5000.0
        self.requested: list[list[Table]] = []
        self.answers: Callable[[Table, Values], Values] = lambda _, values: values
        self.ranking.set_tables(rates)

    @property
    def active(self) -> set[str]:
        return {table for _, table in self.ranking.active}

    def tick(self, seconds: float = 1.0) -> bool:
        """Advance the clock, respond to the due requests, and return whether the active tables changed."""
        self.now_s += seconds
        for table, rate in self.rates.items():
            self.counts[table] += round(rate * seconds)
        due = self.ranking.due(self.now_s)
        self.requested.append(list(dict.fromkeys(table for table, _ in due)))
        answers = []
        for table, request in due:
            ((_, series),) = request.parts
            half = self.counts[table] // 2 if table in self.counts else None
            answers.append((table, self.answers(table, {} if half is None else {series: half})))
        return self.ranking.update(answers, self.now_s)

    def run(self, ticks: int) -> list[set[str]]:
        """Run this many ticks, and return the active tables after each of them."""
        active = []
        for _ in range(ticks):
            before = self.ranking.active
            assert self.tick() == (self.ranking.active != before)
            active.append(self.active)
        return active

    def drop(self, *gone: Table) -> None:
        for table in gone:
            del self.rates[table], self.counts[table]
        self.ranking.set_tables(self.rates)

    def create(self, new: Rates) -> None:
        self.rates |= new
        self.counts |= dict.fromkeys(new, 0)
        self.ranking.set_tables(self.rates)


def two_passes(number: int) -> int:
    """Return the number of ticks until all tables have been read twice, with FIRST_S between the two readings."""
    return 2 * -(-number // PER_TICK) + round(FIRST_S) + 1


def busy(number: int, *busiest: int) -> Rates:
    return {table: 1000 + index if index in busiest else 2 for index, table in enumerate(tables(number))}


def test_if_all_tables_fit_the_budget_they_are_read_without_ranking_requests() -> None:
    world = World(busy(10), 10)
    assert world.run(100) == [{table for _, table in tables(10)}] * 100
    assert not any(world.requested)


def test_without_a_budget_no_table_is_read_or_requested() -> None:
    world = World(busy(100), 0)
    assert world.run(100)[-1] == set()
    assert not any(world.requested)


def test_the_busiest_tables_are_found_within_two_passes() -> None:
    for number in (11, 50, 51, 500):
        world = World(busy(number, 3, 7, number - 1), 3)
        assert world.run(two_passes(number))[-1] == {"t3", "t7", f"t{number - 1}"}


@given(st.lists(st.integers(0, 10**6), min_size=4, max_size=120, unique=True))
def test_the_busiest_tables_are_found_whatever_their_rates(per_s: list[int]) -> None:
    world = World(dict(zip(tables(len(per_s)), per_s, strict=True)), 3)
    active = world.run(two_passes(len(per_s)) + round(PERIOD_S) + 5)[-1]
    shown = [rate for (_, name), rate in world.rates.items() if name in active]
    others = [rate for (_, name), rate in world.rates.items() if name not in active]
    # An active table is replaced only by a clearly busier one; the added 1 allows for the rounding of counts.
    assert len(shown) == 3
    assert max(others) <= LEAD * min(shown) + 1


def test_tables_are_ranked_by_their_totals_until_rates_are_known() -> None:
    world = World(busy(20), 2)
    world.counts["ks", "t4"] = world.counts["ks", "t9"] = 10**6
    assert world.run(1)[-1] == {"t4", "t9"}


def test_tables_become_active_only_after_all_have_been_read() -> None:
    world = World(busy(3 * PER_TICK, 3 * PER_TICK - 1), 5)
    assert world.run(2) == [set(), set()]
    assert len(world.run(1)[-1]) == 5


def test_requests_per_tick_are_limited_and_every_table_has_its_turn() -> None:
    number = 10 * PER_TICK
    world = World(busy(number, 1), 5)
    world.run(200)
    assert max(map(len, world.requested)) == PER_TICK
    times = [second for second, requested in enumerate(world.requested) if ("ks", "t77") in requested]
    assert len(times) >= 4
    assert FIRST_S <= times[1] - times[0] <= FIRST_S + 11
    assert all(PERIOD_S <= later - earlier <= PERIOD_S + 11 for earlier, later in pairwise(times[1:]))


def test_tables_with_equal_rates_stay_active() -> None:
    for rate in (0, 1, 500):
        world = World(dict.fromkeys(tables(120), rate), 10)
        active = world.run(two_passes(120) + 600)[two_passes(120) :]
        assert len(set(map(frozenset, active))) == 1
        assert len(active[-1]) == 10


def test_only_a_much_busier_table_replaces_an_active_one() -> None:
    world = World(busy(60, 5), 1)
    assert world.run(two_passes(60))[-1] == {"t5"}
    world.rates["ks", "t8"] = round(1.1 * world.rates["ks", "t5"])
    assert world.run(200)[-1] == {"t5"}
    world.rates["ks", "t8"] = round(1.4 * world.rates["ks", "t5"])
    assert world.run(200)[-1] == {"t8"}


def test_an_idle_table_stays_active_until_another_has_operations() -> None:
    world = World({**dict.fromkeys(tables(60), 0), ("ks", "t50"): 100}, 1)
    world.run(two_passes(60))
    world.rates["ks", "t50"] = 0
    assert world.run(200)[-1] == {"t50"}
    world.rates["ks", "t1"] = 1
    assert world.run(130)[-1] == {"t1"}


def test_after_a_restart_the_active_tables_stay_until_others_are_busier() -> None:
    world = World(busy(200, 3, 7), 2)
    world.run(100)
    world.ranking.reset()
    world.counts = dict.fromkeys(world.counts, 0)
    assert all(active == {"t3", "t7"} for active in world.run(two_passes(200) + 100))
    world.ranking.reset()
    world.counts = dict.fromkeys(world.counts, 0)
    world.rates = busy(200, 11, 12)
    assert world.run(two_passes(200))[-1] == {"t11", "t12"}


def test_decreasing_counters_do_not_give_a_rate() -> None:
    world = World(busy(200, 3, 7), 2)
    world.run(100)
    world.counts = dict.fromkeys(world.counts, 0)
    assert all(active == {"t3", "t7"} for active in world.run(200))


def test_a_dropped_table_is_replaced_at_once() -> None:
    world = World(busy(100, 3, 7, 9), 2)
    assert world.run(100)[-1] == {"t7", "t9"}
    world.drop(("ks", "t9"))
    assert world.active == {"t3", "t7"}
    world.run(100)
    assert ("ks", "t9") not in {table for requested in world.requested[-80:] for table in requested}


def test_a_new_table_is_requested_at_once_and_soon_active_if_busy() -> None:
    world = World(busy(100, 3), 1)
    world.run(90)
    world.create({("ks", "new"): 50_000, ("ks", "idle"): 0})
    assert world.active == {"t3"}
    world.tick()
    assert {("ks", "new"), ("ks", "idle")} <= set(world.requested[-1])
    assert world.run(round(FIRST_S) + 1)[-1] == {"new"}


def test_active_tables_stay_active_when_many_tables_are_created() -> None:
    world = World(busy(10, 1), 10)
    world.create(dict.fromkeys(tables(60, "more"), 0))
    assert world.active == {f"t{index}" for index in range(10)}
    assert {f"t{index}" for index in range(10)} == world.run(200)[-1]


def test_all_tables_are_active_when_few_remain() -> None:
    world = World(busy(60, 1), 10)
    world.run(30)
    world.drop(*tables(60)[5:])
    assert world.active == {f"t{index}" for index in range(5)}
    world.run(3)
    world.create(busy(60, 40))
    assert world.run(two_passes(60))[-1] >= {"t40"}


def test_a_missing_response_does_not_make_a_table_busier() -> None:
    world = World({**busy(60, 1), ("ks", "t2"): 5}, 1)
    world.counts["ks", "t2"] = 10**9
    world.run(two_passes(60))
    world.answers = lambda table, values: {} if table == ("ks", "t2") else values
    world.run(70)
    world.answers = lambda _, values: values
    assert all(active == {"t1"} for active in world.run(200))


def test_a_table_without_responses_does_not_delay_others() -> None:
    world = World(busy(60, 1, 2), 2)
    world.answers = lambda table, values: {} if table == ("ks", "t9") else values
    assert world.run(two_passes(60))[-1] == {"t1", "t2"}


def test_reads_and_writes_are_requested() -> None:
    world = World(busy(20), 1)
    (first, second) = [request for table, request in world.ranking.due(world.now_s) if table == ("ks", "t1")]
    assert {part[1] for request in (first, second) for part in request.parts} == {
        (COUNT, "ks", "t1", "Read"),
        (COUNT, "ks", "t1", "Write"),
    }


def test_selected_tables_and_system_tables_do_not_compete_for_the_budget() -> None:
    rates = {("ks", "named"): 10**6, ("system", "local"): 10**6, **busy(20, 4)}
    world = World(rates, 0, Selection(keyspace="ks", table="named", tables=1))
    assert world.run(two_passes(20))[-1] == {"t4"}
    assert not {("ks", "named"), ("system", "local")} & {table for requested in world.requested for table in requested}
    world = World(rates, 1)
    assert world.run(two_passes(22))[-1] == {"named"}


def test_a_table_listed_twice_counts_once() -> None:
    ranking = Ranking(Selection(tables=3))
    ranking.set_tables([*tables(3), *tables(3)])
    assert ranking.active == frozenset(tables(3))


def test_requests_are_created_only_for_the_tables_that_are_due() -> None:
    ranking = Ranking(Selection(tables=10))
    ranking.set_tables(tables(5000))
    created = {id(request) for _, request in ranking.due(1.0)}
    assert len(created) == 2 * PER_TICK
    ranking.set_tables(tables(5000))
    assert {id(request) for _, request in ranking.due(2.0)} == created


def test_the_busiest_of_thousands_of_tables_are_found_within_two_passes() -> None:
    count = examples(5000)
    world = World({}, 10)
    world.create(busy(count, 17, count - 289))
    assert world.run(two_passes(count))[-1] >= {"t17", f"t{count - 289}"}

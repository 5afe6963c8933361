"""Few of many tables are read: the busiest, found at little cost, and not others every moment."""

from collections.abc import Callable
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from collector.jolokia.table_budget import FIRST_S, LEAD, PER_TICK, PERIOD_S, Ranking
from collector.model.metric import Values
from collector.sampling.selection import Selection, Table

COUNT = "cassandra_table_operations_total"
Rates = dict[Table, int]


def tables(number: int, keyspace: str = "ks") -> list[Table]:
    return [(keyspace, f"t{index}") for index in range(number)]


class World:
    """Tables that do so many reads a second each, and the ranking of them, tick by tick."""

    def __init__(self, rates: Rates, budget: int, selection: Selection | None = None) -> None:
        self.rates = dict(rates)
        self.counts = dict.fromkeys(rates, 0)
        self.ranking = Ranking(selection or Selection(tables=budget))
        self.now_s = 5000.0
        self.asked: list[list[Table]] = []
        self.answers: Callable[[Table, Values], Values] = lambda _, values: values
        self.ranking.set_tables(rates)

    @property
    def active(self) -> set[str]:
        return {table for _, table in self.ranking.active}

    def tick(self, seconds: float = 1.0) -> bool:
        """Let time pass, ask what is due and answer it; return whether other tables are now the most active."""
        self.now_s += seconds
        for table, rate in self.rates.items():
            self.counts[table] += round(rate * seconds)
        due = self.ranking.due(self.now_s)
        self.asked.append(list(dict.fromkeys(table for table, _ in due)))
        found = []
        for table, question in due:
            ((_, series),) = question.parts
            half = self.counts[table] // 2 if table in self.counts else None
            found.append((table, self.answers(table, {} if half is None else {series: half})))
        return self.ranking.update(found, self.now_s)

    def run(self, ticks: int) -> list[set[str]]:
        """Return which were the most active after each tick."""
        found = []
        for _ in range(ticks):
            before = self.ranking.active
            assert self.tick() == (self.ranking.active != before)
            found.append(self.active)
        return found

    def drop(self, *gone: Table) -> None:
        for table in gone:
            del self.rates[table], self.counts[table]
        self.ranking.set_tables(self.rates)

    def create(self, new: Rates) -> None:
        self.rates |= new
        self.counts |= dict.fromkeys(new, 0)
        self.ranking.set_tables(self.rates)


def two_passes(number: int) -> int:
    """Return in how many ticks all tables have been asked twice, the second time FIRST_S after the first."""
    return 2 * -(-number // PER_TICK) + round(FIRST_S) + 1


def busy(number: int, *busiest: int) -> Rates:
    return {table: 1000 + index if index in busiest else 2 for index, table in enumerate(tables(number))}


def test_as_many_as_there_may_be_are_all_read_without_asking() -> None:
    world = World(busy(10), 10)
    assert len(world.active) == 10
    assert not any(world.run(100)[-1] ^ world.active)
    assert not any(world.asked)


def test_without_a_budget_none_is_read_and_none_asked() -> None:
    world = World(busy(100), 0)
    assert world.run(100)[-1] == set()
    assert not any(world.asked)


def test_the_busiest_are_found_within_two_passes() -> None:
    for number in (11, 50, 51, 500):
        world = World(busy(number, 3, 7, number - 1), 3)
        assert world.run(two_passes(number))[-1] == {"t3", "t7", f"t{number - 1}"}


@given(st.lists(st.integers(0, 10**6), min_size=4, max_size=120, unique=True))
def test_the_busiest_are_found_whatever_the_others_do(per_s: list[int]) -> None:
    world = World(dict(zip(tables(len(per_s)), per_s, strict=True)), 3)
    found = world.run(two_passes(len(per_s)) + round(PERIOD_S) + 5)[-1]
    shown = [rate for (_, name), rate in world.rates.items() if name in found]
    others = [rate for (_, name), rate in world.rates.items() if name not in found]
    # One that is read keeps its place until another is clearly busier; halves are rounded.
    assert len(shown) == 3
    assert max(others) <= LEAD * min(shown) + 1


def test_before_there_are_rates_those_that_did_most_since_the_start_are_read() -> None:
    world = World(busy(20), 2)
    world.counts["ks", "t4"] = world.counts["ks", "t9"] = 10**6
    assert world.run(1)[-1] == {"t4", "t9"}


def test_not_before_all_have_been_heard_is_any_the_busiest() -> None:
    world = World(busy(3 * PER_TICK, 3 * PER_TICK - 1), 5)
    assert world.run(2) == [set(), set()]
    assert len(world.run(1)[-1]) == 5


def test_no_tick_asks_for_more_than_so_many_and_each_table_is_asked_in_turn() -> None:
    number = 10 * PER_TICK
    world = World(busy(number, 1), 5)
    world.run(200)
    assert max(map(len, world.asked)) == PER_TICK
    times = [second for second, asked in enumerate(world.asked) if ("ks", "t77") in asked]
    assert len(times) >= 4
    assert FIRST_S <= times[1] - times[0] <= FIRST_S + 11
    assert all(PERIOD_S <= later - earlier <= PERIOD_S + 11 for earlier, later in pairwise(times[1:]))


def test_among_equals_nobody_comes_and_goes() -> None:
    for rate in (0, 1, 500):
        world = World(dict.fromkeys(tables(120), rate), 10)
        found = world.run(two_passes(120) + 600)[two_passes(120) :]
        assert len(set(map(frozenset, found))) == 1
        assert len(found[-1]) == 10


def test_one_that_is_a_little_busier_takes_no_place_and_one_that_is_much_busier_does() -> None:
    world = World(busy(60, 5), 1)
    assert world.run(two_passes(60))[-1] == {"t5"}
    world.rates["ks", "t8"] = round(1.1 * world.rates["ks", "t5"])
    assert world.run(200)[-1] == {"t5"}
    world.rates["ks", "t8"] = round(1.4 * world.rates["ks", "t5"])
    assert world.run(200)[-1] == {"t8"}


def test_one_that_falls_idle_keeps_its_place_until_another_does_something() -> None:
    world = World({**dict.fromkeys(tables(60), 0), ("ks", "t50"): 100}, 1)
    world.run(two_passes(60))
    world.rates["ks", "t50"] = 0
    assert world.run(200)[-1] == {"t50"}
    world.rates["ks", "t1"] = 1
    assert world.run(130)[-1] == {"t1"}


def test_after_a_restart_the_same_are_read_on_and_the_busiest_found_anew() -> None:
    world = World(busy(200, 3, 7), 2)
    world.run(100)
    world.ranking.reset()
    world.counts = dict.fromkeys(world.counts, 0)
    assert all(found == {"t3", "t7"} for found in world.run(two_passes(200) + 100))
    world.ranking.reset()
    world.counts = dict.fromkeys(world.counts, 0)
    world.rates = busy(200, 11, 12)
    assert world.run(two_passes(200))[-1] == {"t11", "t12"}


def test_a_restart_that_nobody_noticed_is_no_rate() -> None:
    world = World(busy(200, 3, 7), 2)
    world.run(100)
    world.counts = dict.fromkeys(world.counts, 0)
    assert all(found == {"t3", "t7"} for found in world.run(200))


def test_a_dropped_table_makes_way_at_once() -> None:
    world = World(busy(100, 3, 7, 9), 2)
    assert world.run(100)[-1] == {"t7", "t9"}
    world.drop(("ks", "t9"))
    assert world.active == {"t3", "t7"}
    world.run(100)
    assert ("ks", "t9") not in {table for asked in world.asked[-80:] for table in asked}


def test_a_new_table_is_asked_at_once_and_read_soon_if_it_is_busy() -> None:
    world = World(busy(100, 3), 1)
    world.run(90)
    world.create({("ks", "new"): 50_000, ("ks", "idle"): 0})
    assert world.active == {"t3"}
    world.tick()
    assert {("ks", "new"), ("ks", "idle")} <= set(world.asked[-1])
    assert world.run(round(FIRST_S) + 1)[-1] == {"new"}


def test_when_there_are_too_many_all_of_a_sudden_those_that_are_read_stay_until_the_others_are_known() -> None:
    world = World(busy(10, 1), 10)
    world.create(dict.fromkeys(tables(60, "more"), 0))
    assert world.active == {f"t{index}" for index in range(10)}
    assert {f"t{index}" for index in range(10)} == world.run(200)[-1]


def test_when_there_are_few_again_all_are_read() -> None:
    world = World(busy(60, 1), 10)
    world.run(30)
    world.drop(*tables(60)[5:])
    assert world.active == {f"t{index}" for index in range(5)}
    world.run(3)
    world.create(busy(60, 40))
    assert world.run(two_passes(60))[-1] >= {"t40"}


def test_a_table_that_did_not_answer_once_is_no_busier_for_it() -> None:
    world = World({**busy(60, 1), ("ks", "t2"): 5}, 1)
    world.counts["ks", "t2"] = 10**9
    world.run(two_passes(60))
    world.answers = lambda table, values: {} if table == ("ks", "t2") else values
    world.run(70)
    world.answers = lambda _, values: values
    assert all(found == {"t1"} for found in world.run(200))


def test_one_that_never_answers_holds_up_nobody() -> None:
    world = World(busy(60, 1, 2), 2)
    world.answers = lambda table, values: {} if table == ("ks", "t9") else values
    assert world.run(two_passes(60))[-1] == {"t1", "t2"}


def test_reads_and_writes_count_both() -> None:
    world = World(busy(20), 1)
    (first, second) = [question for table, question in world.ranking.due(world.now_s) if table == ("ks", "t1")]
    assert {part[1] for question in (first, second) for part in question.parts} == {
        (COUNT, "ks", "t1", "Read"),
        (COUNT, "ks", "t1", "Write"),
    }


def test_named_tables_and_cassandras_own_are_not_in_competition() -> None:
    rates = {("ks", "named"): 10**6, ("system", "local"): 10**6, **busy(20, 4)}
    world = World(rates, 0, Selection(keyspace="ks", table="named", tables=1))
    assert world.run(two_passes(20))[-1] == {"t4"}
    assert not {("ks", "named"), ("system", "local")} & {table for asked in world.asked for table in asked}
    world = World(rates, 1)
    assert world.run(two_passes(22))[-1] == {"named"}


def test_a_table_that_is_told_of_several_times_is_one() -> None:
    ranking = Ranking(Selection(tables=3))
    ranking.set_tables([*tables(3), *tables(3)])
    assert ranking.active == frozenset(tables(3))


def test_of_five_thousand_tables_no_more_is_made_than_is_asked() -> None:
    ranking = Ranking(Selection(tables=10))
    ranking.set_tables(tables(5000))
    made = {id(question) for _, question in ranking.due(1.0)}
    assert len(made) == 2 * PER_TICK
    ranking.set_tables(tables(5000))
    assert {id(question) for _, question in ranking.due(2.0)} == made


def test_of_five_thousand_tables_the_busiest_are_found_within_two_passes() -> None:
    world = World({}, 10)
    world.create(busy(5000, 17, 4711))
    assert world.run(two_passes(5000))[-1] >= {"t17", "t4711"}

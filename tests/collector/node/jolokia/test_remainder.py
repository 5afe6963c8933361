"""The remainder: the operations on tables that are not read individually, each counted exactly once."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from collector.model.metric import Series, Values
from collector.node.jolokia.table_budget import OTHERS, Remainder

KEYSPACE_COUNT, TABLE_COUNT = "cassandra_keyspace_operations_total", "cassandra_table_operations_total"
KEYSPACE_TIME, TABLE_TIME = "cassandra_keyspace_operation_seconds_total", "cassandra_table_operation_seconds_total"
REST: Series = (TABLE_COUNT, "ks", OTHERS, "Read")
TABLES = ("a", "b", "c")
Increases = dict[str, int]


def read(remainder: Remainder, keyspace: int | None, **tables: int) -> int | None:
    """Return the remainder's counter after a tick with these readings, or None if the keyspace was not read."""
    values: Values = {(TABLE_COUNT, "ks", table, "Read"): count for table, count in tables.items()}
    if keyspace is not None:
        values[KEYSPACE_COUNT, "ks", "Read"] = keyspace
    count = remainder.counters(values).get(REST)
    assert count is None or isinstance(count, int)
    return count


def test_the_remainder_is_the_keyspace_minus_the_tables_that_are_read() -> None:
    remainder = Remainder()
    assert read(remainder, 1000, a=300, b=200) == 0
    assert read(remainder, 1100, a=350, b=220) == 30
    assert read(remainder, 1100, a=350, b=220) == 30
    assert read(remainder, 1110, a=350, b=220) == 40


def test_without_tables_the_remainder_is_the_keyspace() -> None:
    remainder = Remainder()
    assert [read(remainder, count) for count in (500, 500, 507, 600)] == [0, 0, 7, 100]


def test_operations_on_a_table_while_it_is_not_read_belong_to_the_remainder() -> None:
    remainder = Remainder()
    read(remainder, 100)
    assert read(remainder, 110, a=50) == 10
    assert read(remainder, 120, a=60) == 10
    assert read(remainder, 130) == 20
    assert read(remainder, 140, a=80) == 30
    assert read(remainder, 150, a=90) == 30


def test_the_remainder_is_known_only_when_the_keyspace_is_read() -> None:
    remainder = Remainder()
    assert [read(remainder, keyspace, a=a) for keyspace, a in ((0, 0), (None, 5), (None, 7))] == [0, None, None]
    assert read(remainder, 30, a=10) == 20
    assert read(remainder, None, a=11) is None
    assert read(remainder, 40, a=15) == 25


def test_a_recreated_table_does_not_decrease_the_remainder() -> None:
    remainder = Remainder()
    read(remainder, 100, a=50)
    read(remainder, None, a=60)
    assert read(remainder, 115, a=2) == 5
    assert read(remainder, 120, a=7) == 5


def test_after_a_keyspace_is_recreated_the_remainder_continues() -> None:
    remainder = Remainder()
    read(remainder, 100)
    assert read(remainder, 150) == 50
    assert read(remainder, 3) == 50
    assert read(remainder, 10) == 57


def test_a_table_read_before_its_keyspace_is_compensated_for_later() -> None:
    remainder = Remainder()
    read(remainder, 100, a=100)
    assert read(remainder, 110, a=115) == 0
    assert read(remainder, 130, a=130) == 0
    assert read(remainder, 140, a=130) == 10


def test_operations_keyspaces_and_times_are_counted_separately() -> None:
    remainder = Remainder()
    for factor in (0, 1):
        counters = remainder.counters(
            {
                (KEYSPACE_COUNT, "ks", "Read"): 10 * factor,
                (KEYSPACE_COUNT, "ks", "Write"): 100 * factor,
                (KEYSPACE_COUNT, "other", "Read"): 1000 * factor,
                (KEYSPACE_TIME, "ks", "Read"): 10_000 * factor,
                (TABLE_COUNT, "ks", "a", "Read"): 1 * factor,
                (TABLE_COUNT, "ks", "a", "Write"): 2 * factor,
                (TABLE_COUNT, "other", "a", "Read"): 3 * factor,
                (TABLE_TIME, "ks", "a", "Read"): 4 * factor,
            }
        )
    assert counters == {
        (TABLE_COUNT, "ks", OTHERS, "Read"): 9,
        (TABLE_COUNT, "ks", OTHERS, "Write"): 98,
        (TABLE_COUNT, "other", OTHERS, "Read"): 997,
        (TABLE_TIME, "ks", OTHERS, "Read"): 9996,
    }


def test_other_series_and_texts_are_ignored() -> None:
    assert (
        Remainder().counters({(KEYSPACE_COUNT, "ks", "Read"): "NaN", ("cassandra_load_bytes",): 5, ("x", "y"): 1.5})
        == {}
    )


@dataclass(frozen=True)
class Step:
    """One tick: the increases before the first reading, and those between the keyspace's and the tables' readings."""

    increases: Increases
    between: Increases
    shown: frozenset[str]
    keyspace_first: bool
    keyspace_read: bool
    dropped: frozenset[str]


increases = st.dictionaries(st.sampled_from(TABLES), st.integers(0, 1000), max_size=3)
names = st.frozensets(st.sampled_from(TABLES))


def steps(inconsistent: bool) -> st.SearchStrategy[list[Step]]:
    step = st.builds(
        Step,
        increases,
        increases if inconsistent else st.just({}),
        names,
        st.booleans(),
        st.sampled_from([True, True, True, False]),
        st.one_of(st.just(frozenset()), st.just(frozenset()), names),
    )
    return st.lists(step, min_size=1, max_size=25)


class Keyspace:
    """The counters of a keyspace and its tables; recreating a table resets its own counter but not the keyspace's."""

    def __init__(self) -> None:
        self.count = 10**6
        self.tables: Counter[str] = Counter(dict.fromkeys(TABLES, 10**5))

    def do(self, increase: Increases) -> None:
        self.count += sum(increase.values())
        self.tables.update(increase)


def play(keyspace: Keyspace, step: Step) -> tuple[int | None, Increases]:
    """Execute the step; return the readings of the keyspace, or None if it is not read, and of the shown tables."""
    for table in step.dropped:
        keyspace.tables[table] = 0
    keyspace.do(step.increases)
    count, tables = keyspace.count, dict(keyspace.tables)
    keyspace.do(step.between)
    if step.keyspace_first:
        tables = dict(keyspace.tables)
    else:
        count = keyspace.count
    return count if step.keyspace_read else None, {table: tables[table] for table in step.shown}


class Reader:
    """Sums the tables' increases from tick to tick, as the rate calculation does."""

    def __init__(self) -> None:
        self.increase = 0
        self._last: Increases = {}

    def see(self, tables: Increases) -> None:
        self.increase += sum(max(count - self._last.get(table, count), 0) for table, count in tables.items())
        self._last = tables


def run(played: Sequence[Step]) -> list[tuple[int, int, int]]:
    """For each reading of the keyspace, return its count, the total increase of the shown tables, and the remainder."""
    keyspace, remainder, reader = Keyspace(), Remainder(), Reader()
    readings = []
    for step in played:
        count, tables = play(keyspace, step)
        reader.see(tables)
        rest = read(remainder, count, **tables)
        assert (rest is None) == (count is None)
        if count is not None and rest is not None:
            readings.append((count, reader.increase, rest))
    return readings


@given(steps(inconsistent=False))
def test_shown_tables_and_remainder_add_up_to_the_keyspace(played: list[Step]) -> None:
    readings = run(played)
    for (count, shown, rest), (later, shown_later, rest_later) in pairwise(readings):
        assert shown_later - shown + rest_later - rest == later - count


@given(steps(inconsistent=True))
def test_the_remainder_never_decreases_and_never_exceeds_the_keyspace(played: list[Step]) -> None:
    readings = run(played)
    for (count, _, rest), (later, _, rest_later) in pairwise(readings):
        assert 0 <= rest_later - rest <= later - count


@given(steps(inconsistent=True))
def test_after_inconsistent_readings_the_sum_is_right_again(played: list[Step]) -> None:
    # The increase in the last step exceeds any inconsistency between the readings of the keyspace and of its tables.
    last = Step({"c": 100_000}, {}, frozenset({"a"}), keyspace_first=True, keyspace_read=True, dropped=frozenset())
    begin = Step({}, {}, frozenset(), keyspace_first=True, keyspace_read=True, dropped=frozenset())
    readings = run([begin, *played, last])
    (count, shown, rest), (later, shown_later, rest_later) = readings[0], readings[-1]
    assert shown_later - shown + rest_later - rest == later - count

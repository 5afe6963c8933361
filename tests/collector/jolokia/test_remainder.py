"""What the tables did together that are not read: nothing is lost, and nothing told twice."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from collector.jolokia.table_budget import OTHERS, Remainder
from collector.model.metric import Series, Values

KEYSPACE_COUNT, TABLE_COUNT = "cassandra_keyspace_operations_total", "cassandra_table_operations_total"
KEYSPACE_TIME, TABLE_TIME = "cassandra_keyspace_operation_seconds_total", "cassandra_table_operation_seconds_total"
REST: Series = (TABLE_COUNT, "ks", OTHERS, "Read")
TABLES = ("a", "b", "c")
Gains = dict[str, int]


def read(remainder: Remainder, keyspace: int | None, **tables: int) -> int | None:
    """Return the counter of the others after a tick in which these were read."""
    values: Values = {(TABLE_COUNT, "ks", table, "Read"): count for table, count in tables.items()}
    if keyspace is not None:
        values[KEYSPACE_COUNT, "ks", "Read"] = keyspace
    found = remainder.counters(values).get(REST)
    assert found is None or isinstance(found, int)
    return found


def test_the_others_did_what_the_keyspace_did_without_the_tables_that_are_read() -> None:
    remainder = Remainder()
    assert read(remainder, 1000, a=300, b=200) == 0
    assert read(remainder, 1100, a=350, b=220) == 30
    assert read(remainder, 1100, a=350, b=220) == 30
    assert read(remainder, 1110, a=350, b=220) == 40


def test_without_tables_that_are_read_the_others_are_the_keyspace() -> None:
    remainder = Remainder()
    assert [read(remainder, count) for count in (500, 500, 507, 600)] == [0, 0, 7, 100]


def test_what_a_table_does_before_it_is_first_read_and_after_it_was_last_read_is_the_others() -> None:
    remainder = Remainder()
    read(remainder, 100)
    assert read(remainder, 110, a=50) == 10
    assert read(remainder, 120, a=60) == 10
    assert read(remainder, 130) == 20
    assert read(remainder, 140, a=80) == 30
    assert read(remainder, 150, a=90) == 30


def test_a_keyspace_that_is_read_more_rarely_has_its_others_told_then() -> None:
    remainder = Remainder()
    assert [read(remainder, *each[:1], **each[1]) for each in ((0, {"a": 0}), (None, {"a": 5}), (None, {"a": 7}))] == [
        0,
        None,
        None,
    ]
    assert read(remainder, 30, a=10) == 20
    assert read(remainder, None, a=11) is None
    assert read(remainder, 40, a=15) == 25


def test_a_table_that_is_made_anew_takes_nothing_back() -> None:
    remainder = Remainder()
    read(remainder, 100, a=50)
    read(remainder, None, a=60)
    assert read(remainder, 115, a=2) == 5
    assert read(remainder, 120, a=7) == 5


def test_a_keyspace_that_is_made_anew_goes_on_from_where_the_others_were() -> None:
    remainder = Remainder()
    read(remainder, 100)
    assert read(remainder, 150) == 50
    assert read(remainder, 3) == 50
    assert read(remainder, 10) == 57


def test_what_was_read_of_the_tables_too_early_is_owed_and_not_lost() -> None:
    remainder = Remainder()
    read(remainder, 100, a=100)
    assert read(remainder, 110, a=115) == 0
    assert read(remainder, 130, a=130) == 0
    assert read(remainder, 140, a=130) == 10


def test_operations_keyspaces_and_times_do_not_mix() -> None:
    remainder = Remainder()
    for factor in (0, 1):
        found = remainder.counters(
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
    assert found == {
        (TABLE_COUNT, "ks", OTHERS, "Read"): 9,
        (TABLE_COUNT, "ks", OTHERS, "Write"): 98,
        (TABLE_COUNT, "other", OTHERS, "Read"): 997,
        (TABLE_TIME, "ks", OTHERS, "Read"): 9996,
    }


def test_what_is_no_number_and_what_is_something_else_is_left_alone() -> None:
    assert (
        Remainder().counters({(KEYSPACE_COUNT, "ks", "Read"): "NaN", ("cassandra_load_bytes",): 5, ("x", "y"): 1.5})
        == {}
    )


@dataclass(frozen=True)
class Step:
    """One tick of a keyspace: what its tables did before the first and between the two readings."""

    gains: Gains
    between: Gains
    shown: frozenset[str]
    keyspace_first: bool
    keyspace_read: bool
    dropped: frozenset[str]


gains = st.dictionaries(st.sampled_from(TABLES), st.integers(0, 1000), max_size=3)
names = st.frozensets(st.sampled_from(TABLES))


def steps(torn: bool) -> st.SearchStrategy[list[Step]]:
    step = st.builds(
        Step,
        gains,
        gains if torn else st.just({}),
        names,
        st.booleans(),
        st.sampled_from([True, True, True, False]),
        st.one_of(st.just(frozenset()), st.just(frozenset()), names),
    )
    return st.lists(step, min_size=1, max_size=25)


class Keyspace:
    """A keyspace with its tables' counters; what it did is kept when a table is dropped and made anew."""

    def __init__(self) -> None:
        self.count = 10**6
        self.tables: Counter[str] = Counter(dict.fromkeys(TABLES, 10**5))

    def do(self, increase: Gains) -> None:
        self.count += sum(increase.values())
        self.tables.update(increase)


def play(keyspace: Keyspace, step: Step) -> tuple[int | None, Gains]:
    """Let the step happen; return what was read of the keyspace and of the tables."""
    for table in step.dropped:
        keyspace.tables[table] = 0
    keyspace.do(step.gains)
    count, tables = keyspace.count, dict(keyspace.tables)
    keyspace.do(step.between)
    if step.keyspace_first:
        tables = dict(keyspace.tables)
    else:
        count = keyspace.count
    return count if step.keyspace_read else None, {table: tables[table] for table in step.shown}


class Reader:
    """Who shows the tables: it takes what each gained from one tick to the next, as rates do."""

    def __init__(self) -> None:
        self.increase = 0
        self._last: Gains = {}

    def see(self, tables: Gains) -> None:
        self.increase += sum(max(count - self._last.get(table, count), 0) for table, count in tables.items())
        self._last = tables


def run(played: Sequence[Step]) -> list[tuple[int, int, int]]:
    """Return, for every reading of the keyspace, its counter, what the shown tables gained, and the others' counter."""
    keyspace, remainder, reader = Keyspace(), Remainder(), Reader()
    found = []
    for step in played:
        count, tables = play(keyspace, step)
        reader.see(tables)
        rest = read(remainder, count, **tables)
        assert (rest is None) == (count is None)
        if count is not None and rest is not None:
            found.append((count, reader.increase, rest))
    return found


@given(steps(torn=False))
def test_shown_and_others_together_are_the_keyspace(played: list[Step]) -> None:
    found = run(played)
    for (count, shown, rest), (later, shown_later, rest_later) in pairwise(found):
        assert shown_later - shown + rest_later - rest == later - count


@given(steps(torn=True))
def test_the_others_never_go_back_and_never_do_more_than_the_keyspace(played: list[Step]) -> None:
    found = run(played)
    for (count, _, rest), (later, _, rest_later) in pairwise(found):
        assert 0 <= rest_later - rest <= later - count


@given(steps(torn=True))
def test_however_torn_the_readings_are_the_sum_comes_right(played: list[Step]) -> None:
    # In the end a table that is not shown does more than ever was between two readings.
    quiet = Step({"c": 100_000}, {}, frozenset({"a"}), keyspace_first=True, keyspace_read=True, dropped=frozenset())
    begin = Step({}, {}, frozenset(), keyspace_first=True, keyspace_read=True, dropped=frozenset())
    found = run([begin, *played, quiet])
    (count, shown, rest), (later, shown_later, rest_later) = found[0], found[-1]
    assert shown_later - shown + rest_later - rest == later - count

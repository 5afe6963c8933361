"""A table is named only if it has most of the operations, and other tables have the rest."""

from hypothesis import given
from hypothesis import strategies as st

from collector.model.metric import Series
from collector.model.snapshot import NEVER, Derived, Rate, Sample
from collector.node.jolokia.table_budget import OTHERS
from exporters.results.saturation.saturation import MIN_SHARE, TABLE_OPERATIONS, HotTable, hot_table, table_operations

USERS, EVENTS, REST = ("ks", "users"), ("ks", "events"), ("ks", OTHERS)
INTERVALS = st.lists(st.dictionaries(st.sampled_from([USERS, EVENTS, ("other", "users")]), st.integers(0, 1000)))


@given(INTERVALS)
def test_the_share_is_that_of_the_operations_in_all_intervals(intervals: list[dict[tuple[str, str], float]]) -> None:
    totals: dict[tuple[str, str], float] = {}
    for operations in intervals:
        for table, count in operations.items():
            totals[table] = totals.get(table, 0) + count
    shares = {table: count / sum(totals.values()) for table, count in totals.items() if count}
    hot = [(table, share) for table, share in shares.items() if share >= MIN_SHARE and len(shares) > 1]
    used = [{table: count for table, count in operations.items() if count} for operations in intervals]
    assert hot_table(used) == (HotTable(*hot[0][0], hot[0][1]) if hot else None)


def test_reads_and_writes_are_added() -> None:
    values: dict[Series, Derived] = {
        (TABLE_OPERATIONS, *USERS, "Read"): Rate(60.0, 1.0),
        (TABLE_OPERATIONS, *USERS, "Write"): Rate(30.0, 1.0),
        (TABLE_OPERATIONS, *USERS, "Range"): Rate(5.0, 1.0),
        (TABLE_OPERATIONS, *EVENTS, "Read"): Rate(0.0, 1.0),
    }
    assert table_operations(Sample("n1", NEVER, values, {})) == {USERS: 95.0}


def test_without_recorded_tables_there_is_no_hot_table() -> None:
    assert hot_table([{}, {}]) is None


def test_tables_that_are_not_read_count_but_are_never_named() -> None:
    assert hot_table([{USERS: 90.0, REST: 10.0}]) == HotTable(*USERS, 0.9)
    assert hot_table([{USERS: 10.0, REST: 90.0}]) is None
    # The difference between counters that are read at different times.
    assert hot_table([{USERS: 1000.0, REST: 1.0}]) is None

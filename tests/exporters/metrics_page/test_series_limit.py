"""The series limit: it is never exceeded, every metric is exposed completely or not at all, and no metric flaps."""

from hypothesis import given
from hypothesis import strategies as st

from collector.model.metric import Values
from collector.node.catalogue import CATALOGUE
from exporters.metrics_page.rendering import RETURN_SHARE, Options, Rendering, SeriesLimit, SeriesLines, document
from tests.exporters.metrics_page.parsed import one_of_each, parsed

TABLE, LARGE_TABLE = "cassandra_table_live_sstables", "cassandra_table_operation_duration_seconds"
KEYSPACE, PLAIN = "cassandra_keyspace_operations_total", "cassandra_jvm_gc_total"
SIZES = st.dictionaries(st.sampled_from(sorted(CATALOGUE)), st.integers(0, 60), max_size=12)


def limited_to(most: int) -> tuple[SeriesLimit, list[str]]:
    messages: list[str] = []
    return SeriesLimit(most, CATALOGUE, messages.append), messages


def test_within_the_limit_all_metrics_are_rendered() -> None:
    limited, messages = limited_to(100)
    assert limited.left_out({TABLE: 50, PLAIN: 40}, 10) == {}
    assert messages == []


def test_the_largest_table_metric_is_left_out_first() -> None:
    limited, messages = limited_to(100)
    assert limited.left_out({TABLE: 30, LARGE_TABLE: 40, KEYSPACE: 45, PLAIN: 30}, 0) == {LARGE_TABLE: 40, TABLE: 30}
    assert messages == [
        f"/metrics: 145 series exceed the limit of 100: left out {LARGE_TABLE} (40), {TABLE} (30) "
        "(hint: raise the limit or read fewer tables)"
    ]


def test_table_metrics_are_left_out_before_keyspace_metrics_and_others() -> None:
    for most, left_out in (75, {TABLE}), (60, {TABLE, KEYSPACE}), (30, {TABLE, KEYSPACE, PLAIN}):
        limited, _ = limited_to(most)
        assert limited.left_out({TABLE: 28, KEYSPACE: 30, PLAIN: 32}, 0).keys() == left_out


def test_a_large_metric_does_not_displace_small_ones() -> None:
    limited, _ = limited_to(50)
    assert limited.left_out({TABLE: 5, KEYSPACE: 30, PLAIN: 90}, 0) == {PLAIN: 90}


def test_each_metric_is_logged_once() -> None:
    limited, messages = limited_to(100)
    for size in (200, 10, 300, 200):
        limited.left_out({TABLE: size}, 0)
    assert len(messages) == 1


def test_a_metric_near_the_limit_does_not_flap() -> None:
    limited, _ = limited_to(100)
    assert limited.left_out({TABLE: 60, PLAIN: 41}, 0)
    for size in (60, 58, 52, 59, 60, 55):
        assert limited.left_out({TABLE: size, PLAIN: 39}, 0) == {TABLE: size}
    assert limited.left_out({TABLE: 50, PLAIN: 39}, 0) == {}
    assert limited.left_out({TABLE: 60, PLAIN: 40}, 0) == {}


def test_an_absent_metric_stays_left_out() -> None:
    limited, messages = limited_to(100)
    for sizes in ({TABLE: 80, PLAIN: 41}, {PLAIN: 41}, {TABLE: 55, PLAIN: 41}):
        left_out_now = limited.left_out(sizes, 0)
        assert left_out_now == ({TABLE: sizes[TABLE]} if TABLE in sizes else {})
    assert len(messages) == 1


@given(st.lists(SIZES, min_size=1, max_size=6), st.integers(1, 300), st.integers(0, 50))
def test_the_limit_holds_and_repeated_calls_agree(ticks: list[dict[str, int]], most: int, others: int) -> None:
    limited, _ = limited_to(most)
    for sizes in ticks:
        left_out = limited.left_out(sizes, others)
        assert limited.left_out(sizes, others) == left_out
        total = others + len(left_out) + sum(size for name, size in sizes.items() if name not in left_out)
        assert total <= most or left_out.keys() >= {name for name, size in sizes.items() if size > 1}
        for name, size in left_out.items():
            assert total - 1 + size > RETURN_SHARE * most, name


def many_tables(count: int) -> Values:
    values = one_of_each()
    for number in range(count):
        values["cassandra_table_live_sstables", "ks", f"t{number}"] = number
        values["cassandra_table_operation_duration_seconds", "ks", f"t{number}", "Read"] = (1,) * 128
    return values


def test_the_page_reports_metrics_that_are_left_out() -> None:
    messages: list[str] = []
    rendering = Rendering(Options(limit=2000), CATALOGUE, messages.append, SeriesLines)
    page = parsed(document(rendering.parts(many_tables(200), {}, 50), openmetrics=False))
    assert len(page.values) + 50 == page.of("casstat_series")
    assert page.of("casstat_series_limit") == 2000
    assert 50 < len(page.values) < 1950
    left_out = {dict(labels)["metric"]: n for (name, labels), n in page.values.items() if name.endswith("_refused")}
    assert left_out == {"cassandra_table_operation_duration_seconds": 201 * 24}
    for name in left_out:
        assert not [series for series, _ in page.values if series.startswith(name)]
        assert name in messages[0]
    assert page.of("cassandra_table_live_sstables", keyspace="ks", table="t7") == 7

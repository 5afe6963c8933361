"""Selectors choose the same series as in Prometheus, and invalid ones are rejected quickly."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from collector.model.metric import Series
from collector.model.snapshot import Sample, Tick
from exporters.series_selector import SeriesSelection, parse
from tests.every import every

REQUESTS, POOLS = "cassandra_client_requests_total", "cassandra_pool_pending"
READ, WRITE, QUOTED = (REQUESTS, "Read"), (REQUESTS, "Write"), (REQUESTS, 'a"b\\c\n{},|.*')
STAGES = [(POOLS, path, pool) for path in ("request", "internal") for pool in ("ReadStage", "GossipStage")]
PENDING, UNKNOWN = ("cassandra_compaction_pending",), ("unknown", "Read")
ALL = [READ, WRITE, QUOTED, *STAGES, PENDING, UNKNOWN]
SAMPLE = Sample(
    "a",
    Tick(1.0),
    dict.fromkeys(ALL, 1.0),
    {},
    last_known=dict.fromkeys(ALL, 2.0),
    spread=dict.fromkeys(ALL, (1.0, 2.0)),
)


def selected(*selectors: str) -> list[Series]:
    """Return the selected series, which are the same in all parts of the sample."""
    sample = SeriesSelection(map(parse, selectors)).of(SAMPLE)
    assert sample.values.keys() == sample.last_known.keys() == sample.spread.keys()
    assert (sample.node, sample.tick) == (SAMPLE.node, SAMPLE.tick)
    return list(sample.values)


@every(
    ("selectors", "series"),
    [
        (["*"], ALL),
        ([REQUESTS], [READ, WRITE, QUOTED]),
        (["cassandra_pool_*", "unknow[n]", "casstat_?"], [*STAGES, UNKNOWN]),
        (["CASSANDRA_*", "cassandra_pool", "pool_pending"], []),
        ([f'{REQUESTS}{{operation="Read"}}'], [READ]),
        ([f'{REQUESTS}{{operation=~"Read|Write"}}'], [READ, WRITE]),
        ([f'{REQUESTS}{{operation=~"Read|"}}'], [READ]),
        ([f'{REQUESTS}{{operation="Read|Write"}}'], []),
        ([f'{REQUESTS}{{operation="read"}}', f'{REQUESTS}{{operation="Rea"}}'], []),
        ([REQUESTS + r'{operation="a\"b\\c\n{},|.*"}'], [QUOTED]),
        (['cassandra_*{operation="Write"}'], [WRITE]),
        ([f'{POOLS}{{path="request",pool="ReadStage"}}'], [STAGES[0]]),
        ([f'{POOLS}{{pool="ReadStage",path="request"}}'], [STAGES[0]]),
        ([f'{POOLS}{{pool="ReadStage"}}'], [STAGES[0], STAGES[2]]),
        ([f'{POOLS}{{ pool = "ReadStage" , }} '], [STAGES[0], STAGES[2]]),
        ([f"{POOLS}{{}}"], STAGES),
    ],
)
def test_the_series_that_match_are_selected(selectors: list[str], series: list[Series]) -> None:
    assert selected(*selectors) == series


@every(
    ("selectors", "series"),
    [
        ([f'{REQUESTS}{{operation="Write"}}', f'{REQUESTS}{{operation="Read"}}', PENDING[0]], [READ, WRITE, PENDING]),
        ([f'{REQUESTS}{{operation="Read"}}', REQUESTS], [READ, WRITE, QUOTED]),
        ([REQUESTS, f'{REQUESTS}{{operation="Read"}}'], [READ, WRITE, QUOTED]),
        ([f'{REQUESTS}{{operation="Read"}}'] * 3, [READ]),
        ([f'{POOLS}{{path="request",pool="ReadStage"}}', f'{POOLS}{{pool="GossipStage"}}'], [*STAGES[:2], STAGES[3]]),
    ],
)
def test_a_series_is_selected_if_it_matches_any_selector(selectors: list[str], series: list[Series]) -> None:
    assert selected(*selectors) == series


@pytest.mark.parametrize(
    ("matchers", "series"),
    [
        ('operation="Read",operation="Write"', []),
        ('operation=~"Read|Write",operation=~"Write|CASRead"', [WRITE]),
    ],
)
def test_a_label_that_occurs_twice_must_meet_both_matchers(matchers: str, series: list[Series]) -> None:
    assert selected(f"{REQUESTS}{{{matchers}}}") == series


def test_a_missing_label_has_the_value_of_an_empty_string() -> None:
    assert selected('*{keyspace="ks1"}', f'{REQUESTS}{{operation="Read",path="request"}}') == []
    assert selected(f'{REQUESTS}{{operation="Read",path=""}}', f'{PENDING[0]}{{path=~"|request"}}') == [READ, PENDING]
    # The labels of a metric that is not in the catalogue have no names.
    assert selected('unknown{operation="Read"}') == []


@every(
    "text",
    [
        "",
        '{operation="Read"}',
        "a b",
        "a}",
        'a"',
        "ä*",
        "a\n",
        "a{",
        "a{}}",
        "a{}b",
        "a{,}",
        'a{b="c"',
        'a{b="c',
        'a{b="c}',
        'a{b="c\\"}',
        'a{b="c\\',
        'a{b="c"d="e"}',
        'a{b="c",,d="e"}',
        "a{b=c}",
        "a{b='c'}",
        'a{b!="c"}',
        'a{b!~"c"}',
        'a{b~"c"}',
        'a{="c"}',
        'a{1b="c"}',
        'a{ä="c"}',
        'a{b="\\x41"}',
        'a{b="\\\n"}',
        'a{b=~".*"}',
        'a{b=~"(a+)+"}',
        'a{b=~"a[bc]"}',
        'a{b=~"c\\\\.d"}',
        'a{b=~"^c$"}',
    ],
)
def test_an_invalid_selector_is_an_error_of_one_line(text: str) -> None:
    with pytest.raises(ValueError, match=r"^.+$") as error:
        parse(text)
    assert str(error.value).isprintable()


LABEL_VALUES = st.text(max_size=5)


@given(st.lists(LABEL_VALUES, min_size=1), LABEL_VALUES)
@example(['\\"'], '"')
def test_any_label_value_can_be_selected(values: list[str], other: str) -> None:
    escaped = [value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") for value in values]
    selection = SeriesSelection(parse(f'{REQUESTS}{{operation="{value}"}}') for value in escaped)
    sample = Sample("a", Tick(1.0), {(REQUESTS, value): 1.0 for value in {*values, other}}, {})
    assert {series[1] for series in selection.of(sample).values} == set(values)


@given(st.text(alphabet='a_*[]{}="~|,\\\n .', max_size=30) | st.text(max_size=30))
def test_arbitrary_text_is_a_selector_or_an_error(text: str) -> None:
    try:
        selector = parse(text)
    except ValueError:
        return
    assert set(selected(text)) <= set(ALL)
    assert selector.pattern == text.partition("{")[0]


@pytest.mark.parametrize(
    "text",
    [
        "*a" * 50_000 + "{",
        'a{b="' + "\\\\" * 50_000,
        'a{b="' + "c" * 100_000,
        'a{b="c' + " " * 100_000,
        'a{b=~"' + "c|" * 50_000 + '("}',
        "a{" + 'b="c",' * 10_000,
    ],
)
@pytest.mark.timeout(20)
def test_a_long_invalid_selector_is_rejected_in_linear_time(text: str) -> None:
    with pytest.raises(ValueError, match="not a selector of series"):
        parse(text)

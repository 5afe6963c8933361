"""Addresses, columns, history, sparklines."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cli.top.column_sets import SETS, wanted
from collector.cluster.live.node_address import TargetError, target_of
from collector.model.metric import Series
from collector.model.sample import Derived, Rate
from collector.model.sample_json import decoded, encoded
from exporters.api.samples_endpoint import LONGEST_PATTERN, MOST_PATTERNS
from exporters.live.history import History
from exporters.live.live_columns import COLUMNS, PLACES, cells_of, columns_of, needed, needs, patterns
from exporters.live.sparkline import BLOCKS, spark
from tests.exporters.live.generated_frames import frames, of


@pytest.mark.parametrize(
    ("text", "url", "is_agent"),
    [
        ("10.0.0.7", "http://10.0.0.7:17199", True),
        ("node7:9000", "http://node7:9000", True),
        ("https://node7", "https://node7:17199", True),
        ("https://node7:17199/", "https://node7:17199", True),
        ("fe80::1", "http://[fe80::1]:17199", True),
        ("[fe80::1]:5", "http://[fe80::1]:5", True),
        ("10.0.0.7:8778", "http://10.0.0.7:8778/jolokia", False),
        ("http://10.0.0.7:8778/jolokia/", "http://10.0.0.7:8778/jolokia", False),
        ("https://10.0.0.7/jolokia", "https://10.0.0.7:443/jolokia", False),
    ],
)
def test_what_an_address_means(text: str, url: str, is_agent: bool) -> None:
    target = target_of(text)
    assert (target.url, target.is_agent) == (url, is_agent)
    assert target.beside("10.0.0.8").host == "10.0.0.8"


@pytest.mark.parametrize("text", ["", "http://", "ftp://a", "a:b", "a:99999", "a b", "http://a/?x=1", "a:0", "\x1b[2J"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(TargetError, match="is no node: one looks like"):
        target_of(text)


def test_no_password_stands_in_an_address() -> None:
    with pytest.raises(TargetError) as refused:
        target_of("http://me:secret@host")
    assert "secret" not in str(refused.value)


@given(st.text(max_size=40))
def test_any_text_is_an_address_or_refused_in_a_line(text: str) -> None:
    said = ""
    try:
        target_of(text)
    except TargetError as error:
        said = str(error)
    assert said == "" or said.isprintable()


@pytest.mark.parametrize("number", range(len(SETS)))
def test_every_set_of_columns_can_be_asked_for(number: int) -> None:
    asked = patterns(needs(wanted(number).columns))
    # Two more columns may be chosen, to sort by and to see transposed.
    assert len(asked) <= MOST_PATTERNS - 8
    assert all(len(pattern) <= LONGEST_PATTERN for pattern in asked)


def test_sets_show_columns_that_there_are() -> None:
    assert all(name in PLACES for each in SETS for name in (*each.columns, *each.worst))
    assert [column.name for column in columns_of(local=True)] == [column.name for column in COLUMNS]


def test_what_is_left_out_before_decoding_is_not_missed() -> None:
    busy = of("a")
    other: dict[Series, Derived] = {("cassandra_client_requests_total", "CASRead"): Rate(1.0, 1.0)}
    whole = encoded(replace(busy, values={**busy.values, **other}))
    less = decoded({**whole, "values": needed(whole["values"])})
    assert len(less.values) < len(decoded(whole).values)
    assert list(map(repr, cells_of(less))) == list(map(repr, cells_of(decoded(whole))))


@given(
    st.dictionaries(
        st.text(max_size=5) | st.sampled_from(["cassandra_client_requests_total"]),
        st.none() | st.lists(st.lists(st.integers())) | st.integers(),
    )
)
def test_nonsense_is_left_for_the_decoder(values: dict[str, object]) -> None:
    assert needed(values).keys() == values.keys()


def test_history_keeps_what_fits() -> None:
    made = frames(8)
    history = History(longest=5)
    for frame in made:
        history.add(frame)
    assert list(history.frames) == made[-5:]
    assert history.number == 8
    small = History(limit_bytes=1)
    for frame in made:
        small.add(frame)
    assert list(small.frames) == made[-1:]
    assert small.wait(7, 0)
    assert not small.wait(8, 0)


@given(st.lists(st.floats() | st.just(float("nan"))), st.integers(-1, 30))
def test_a_sparkline_is_as_wide_as_it_should_be(values: list[float], width: int) -> None:
    text = spark(values, width)
    assert len(text) == max(width, 0)
    assert set(text) <= {*BLOCKS, " "}


def test_a_sparkline_has_gaps_for_what_is_not_known() -> None:
    assert spark([0, 1, float("nan"), 4, 8], 6) == " ▁▂ ▅█"
    assert spark([0, 0], 2) == "▁▁"

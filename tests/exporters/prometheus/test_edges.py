"""Edges: always Cassandra's own, the nearest to what was wished."""

from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.histogram import LayoutError, edges_of
from exporters.prometheus.edges import COUNTS, DEFAULT_S, Edges, EdgesError

WISHES = st.lists(st.floats(1e-9, 1e6), min_size=1, max_size=30).map(tuple)


@given(WISHES, st.sampled_from([128, 165]))
def test_each_is_the_nearest_that_cassandra_has(wished: tuple[float, ...], length: int) -> None:
    finite = edges_of("seconds", length)[:-1]
    places = Edges(wished).places("seconds", length)
    assert list(places) == sorted(set(places))
    chosen = [finite[place] for place in places]
    for each in wished:
        assert min(abs(edge - each) for edge in chosen) == min(abs(edge - each) for edge in finite)
    assert len(places) <= len(set(wished))


@pytest.mark.parametrize("length", [128, 165])
def test_by_default_about_twenty_from_50_us_to_a_minute(length: int) -> None:
    every = edges_of("seconds", length)
    chosen = [every[place] for place in Edges().places("seconds", length)]
    assert len(chosen) == len(DEFAULT_S) == 21
    assert chosen == pytest.approx(DEFAULT_S, rel=0.1)


@pytest.mark.parametrize("length", [165, 166])
def test_counts_have_edges_of_their_own(length: int) -> None:
    every = edges_of("1", length)
    chosen = [every[place] for place in Edges((1.0,)).places("1", length)]
    assert chosen == pytest.approx([each for each in COUNTS if each or length == 166], rel=0.1)


def test_wishes_for_the_same_edge_are_one() -> None:
    assert len(Edges((0.001, 0.001, 0.00101)).places("seconds", 128)) == 1


@pytest.mark.parametrize("wrong", [(), (0.0,), (-1.0,), (nan,), (0.1, inf)])
def test_what_is_no_edge_is_refused(wrong: tuple[float, ...]) -> None:
    with pytest.raises(EdgesError, match="give positive numbers of seconds"):
        Edges(wrong)


def test_a_layout_that_is_not_known_is_refused() -> None:
    with pytest.raises(LayoutError):
        Edges().places("seconds", 100)

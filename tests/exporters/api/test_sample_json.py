"""Samples as JSON: what is decoded is what was encoded, and what is no sample is said to be none."""

import json
from contextlib import suppress
from dataclasses import replace
from math import inf, isnan, nan
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.catalogue import CATALOGUE
from collector.cluster.aggregation import merged
from collector.model.histogram import Buckets, edges_of
from collector.model.metric import Series
from collector.model.sample import Derived, Rate, Sample
from collector.model.snapshot import Event, Tick
from exporters.api.sample_json import WireError, decoded, encoded
from exporters.identity import Identity
from tests.exporters.samples import busy, unknown

words = st.text(max_size=8)
numbers = st.floats(allow_nan=False, allow_infinity=False)
gauges = st.floats(allow_nan=False)
positive = st.floats(min_value=1e-6, max_value=1e9)
rates = st.builds(Rate, numbers, positive, st.none() | numbers)


@st.composite
def histograms(draw: st.DrawFn) -> Buckets:
    unit, length = draw(st.sampled_from([("seconds", 165), ("seconds", 128), ("1", 165), ("1", 166), ("1", 2)]))
    edges, low = edges_of(unit, length), 0.0
    if draw(st.booleans()):
        edges = (*sorted(draw(st.sets(numbers, max_size=6))), inf)
        low = draw(numbers)
    filled = draw(
        st.dictionaries(st.integers(0, len(edges) - 1), st.integers(1, 1 << 62) | positive, max_size=len(edges))
    )
    return Buckets(edges, tuple(filled.get(index, 0) for index in range(len(edges))), low)


series = st.lists(words, min_size=1, max_size=3).map(tuple)
derived: st.SearchStrategy[Derived] = st.one_of(gauges, words, rates, histograms())
values: st.SearchStrategy[dict[Series, Derived]] = st.dictionaries(series, derived, max_size=5)
samples = st.builds(
    Sample,
    words,
    st.builds(Tick, numbers, numbers, st.integers(0, 99), numbers),
    values,
    st.dictionaries(words, numbers, max_size=3),
    st.lists(st.builds(Event, words, words, st.none() | numbers), max_size=2).map(tuple),
    values,
    st.none() | numbers,
    st.dictionaries(series, st.tuples(gauges, gauges), max_size=3),
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4),
    max_leaves=8,
)


def sent(sample: Sample) -> dict[str, Any]:
    """Return what the other side reads; strict JSON, which has no NaN."""
    content: dict[str, Any] = json.loads(json.dumps(encoded(sample), allow_nan=False))
    return content


@settings(max_examples=60, deadline=None)
@given(samples)
def test_what_is_sent_is_what_arrives(sample: Sample) -> None:
    assert decoded(sent(sample)) == sample


@pytest.mark.parametrize("sample", [busy(), unknown()])
def test_samples_arrive_and_are_added_up_as_here(sample: Sample) -> None:
    arrived = decoded(sent(sample))
    assert arrived == sample
    both = [sample, replace(sample, node="10.0.0.2")]
    there = merged(CATALOGUE, [decoded(sent(each)) for each in both], sample.tick)
    assert there == merged(CATALOGUE, both, sample.tick)


def test_a_gauge_that_is_no_number_stays_none() -> None:
    arrived = decoded(sent(replace(unknown(), values={("g",): nan})))
    value = arrived.values["g",]
    assert isinstance(value, float)
    assert isnan(value)


def test_who_the_node_is_stands_beside_it() -> None:
    content = encoded(unknown(), Identity("c", "dc1", "", "10.0.0.1"))
    assert content["identity"] == {"cluster": "c", "dc": "dc1", "node": "10.0.0.1"}
    assert decoded(content) == unknown()


def test_a_timer_is_written_by_its_layout_and_what_is_filled() -> None:
    (row,) = encoded(busy())["values"]["cassandra_client_request_duration_seconds"][:1]
    assert row[0] == "Read"
    assert row[1] == {"unit": "seconds", "length": 128, "filled": [[28, 4000], [32, 4200], [40, 400], [50, 43]]}


def planted(content: Any, path: list[int], what: Any) -> None:
    """Put `what` somewhere into `content`, wherever the path leads."""
    for step in path:
        keys = list(content) if isinstance(content, dict) else range(len(content))
        if not keys:
            return
        key = keys[step % len(keys)]
        if isinstance(content[key], dict | list) and step % 5:
            content = content[key]
        else:
            content[key] = what
            return


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=6), json_values)
def test_hostile_content_raises_one_error(path: list[int], what: Any) -> None:
    content = sound()
    planted(content, path, what)
    with suppress(WireError):
        json.dumps(encoded(decoded(content)))


def sound() -> Any:
    return sent(replace(busy(), spread={("g",): (1.0, 2.0)}, age_s=1.0, last_known={("h", "x"): 1.0}))


@pytest.mark.parametrize(
    "histogram",
    [
        {"unit": "seconds", "length": 1 << 40, "filled": []},
        {"unit": "seconds", "length": 127, "filled": []},
        {"unit": "parsecs", "length": 128, "filled": []},
        {"unit": "seconds", "length": 128, "filled": [[128, 1]]},
        {"unit": "seconds", "length": 128, "filled": [[-1, 1]]},
        {"unit": "seconds", "length": 128, "filled": [[1, -1]]},
        {"unit": "seconds", "length": 128, "filled": [[1, 1], [1, 1]]},
        {"edges": [2, 1], "low": 0, "filled": []},
    ],
)
def test_histograms_that_cannot_be_are_refused(histogram: Any) -> None:
    content = sent(unknown())
    with pytest.raises(WireError):
        decoded({**content, "values": {"h": [[histogram]]}})


@pytest.mark.parametrize("content", [[], None, {}, {"node": 1}, {"node": "n", "tick": {"time_s": 10**400}}])
def test_what_is_no_sample_at_all(content: Any) -> None:
    with pytest.raises(WireError):
        decoded(content)


def test_what_a_newer_writer_adds_is_left_out() -> None:
    assert decoded({**sent(busy()), "news": 1}) == busy()

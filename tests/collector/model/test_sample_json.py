"""The JSON codec for samples: lossless round trips, and a single kind of error for malformed input."""

import json
from dataclasses import replace
from math import inf, isnan, nan
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.merge.aggregation import merged
from collector.model.histogram import Buckets, upper_bounds_of
from collector.model.metric import Series
from collector.model.sample_json import MalformedSampleError, decoded, encoded
from collector.model.snapshot import Derived, Event, Identity, Rate, Sample, Tick
from collector.node.catalogue import CATALOGUE
from tests.every import every
from tests.examples import examples
from tests.exporters.samples import busy, unknown

words = st.text(max_size=8)
numbers = st.floats(allow_nan=False, allow_infinity=False)
gauges = st.floats(allow_nan=False)
positive = st.floats(min_value=1e-6, max_value=1e9)
rates = st.builds(Rate, numbers, positive, st.none() | numbers)


@st.composite
def histograms(draw: st.DrawFn) -> Buckets:
    unit, length = draw(st.sampled_from([("seconds", 165), ("seconds", 128), ("1", 165), ("1", 166), ("1", 2)]))
    bounds, low = upper_bounds_of(unit, length), 0.0
    if draw(st.booleans()):
        bounds = (*sorted(draw(st.sets(numbers, max_size=6))), inf)
        low = draw(numbers)
    filled = draw(
        st.dictionaries(st.integers(0, len(bounds) - 1), st.integers(1, 1 << 62) | positive, max_size=len(bounds))
    )
    return Buckets(bounds, tuple(filled.get(index, 0) for index in range(len(bounds))), low)


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
    """Return the encoded sample after a round trip through strict JSON, which does not allow NaN."""
    content: dict[str, Any] = json.loads(json.dumps(encoded(sample), allow_nan=False))
    return content


@settings(max_examples=examples(60), deadline=None)
@given(samples)
def test_decoding_reverses_encoding(sample: Sample) -> None:
    assert decoded(sent(sample)) == sample


@pytest.mark.parametrize("sample", [busy(), unknown()])
def test_decoded_samples_merge_like_the_originals(sample: Sample) -> None:
    received = decoded(sent(sample))
    assert received == sample
    samples = [sample, replace(sample, node="10.0.0.2")]
    merged_after_decoding = merged(CATALOGUE, [decoded(sent(original)) for original in samples], sample.tick)
    assert merged_after_decoding == merged(CATALOGUE, samples, sample.tick)


def test_a_nan_gauge_remains_nan() -> None:
    received = decoded(sent(replace(unknown(), values={("g",): nan})))
    value = received.values["g",]
    assert isinstance(value, float)
    assert isnan(value)


def test_the_identity_is_encoded_beside_the_sample() -> None:
    content = encoded(unknown(), Identity("c", "dc1", "", "10.0.0.1"))
    assert content["identity"] == {"cluster": "c", "dc": "dc1", "node": "10.0.0.1"}
    assert decoded(content) == unknown()


def test_a_histogram_is_encoded_as_its_layout_and_its_filled_buckets() -> None:
    (row,) = encoded(busy())["values"]["cassandra_client_request_duration_seconds"][:1]
    assert row[0] == "Read"
    assert row[1] == {"unit": "seconds", "length": 128, "filled": [[28, 4000], [32, 4200], [40, 400], [50, 43]]}


def inject(content: Any, path: list[int], value: Any) -> None:
    """Replace a part of `content`, chosen by `path`, with `value`."""
    for step in path:
        keys = list(content) if isinstance(content, dict) else range(len(content))
        if not keys:
            return
        key = keys[step % len(keys)]
        if isinstance(content[key], dict | list) and step % 5:
            content = content[key]
        else:
            content[key] = value
            return


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=6), json_values)
def test_hostile_content_gives_an_error_or_a_valid_sample(path: list[int], value: Any) -> None:
    content = valid_content()
    inject(content, path, value)
    try:
        sample = decoded(content)
    except MalformedSampleError:
        return
    assert sent(decoded(sent(sample))) == sent(sample)


def valid_content() -> Any:
    return sent(replace(busy(), spread={("g",): (1.0, 2.0)}, age_s=1.0, last_known={("h", "x"): 1.0}))


@every(
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
def test_invalid_histograms_are_rejected(histogram: Any) -> None:
    content = sent(unknown())
    with pytest.raises(MalformedSampleError):
        decoded({**content, "values": {"h": [[histogram]]}})


@every("content", [[], None, {}, {"node": 1}, {"node": "n", "tick": {"time_s": 10**400}}])
def test_content_that_is_not_a_sample_is_rejected(content: Any) -> None:
    with pytest.raises(MalformedSampleError):
        decoded(content)


def test_unknown_fields_are_ignored() -> None:
    assert decoded({**sent(busy()), "added_later": 1}) == busy()

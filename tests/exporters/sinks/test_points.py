"""A sample's points have the same values as its row; unknown values are left out."""

from collections.abc import Mapping
from dataclasses import replace
from math import inf, nan
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.model.histogram import Buckets, highest, quantile, upper_bounds_of
from collector.model.metric import Metric, Series
from collector.model.snapshot import NOWHERE, Derived, Identity, Placement, Rate, Sample, Tick
from collector.node.catalogue import CATALOGUE as SHIPPED
from exporters.rows.columns import ratio
from exporters.sinks.influxdb import key
from exporters.sinks.parts.all_sinks import sink_of
from exporters.sinks.parts.points import rows, time_ms
from exporters.sinks.sink import Sink
from tests.collector.snapshots import BYTES, CATALOGUE, DURATIONS, REQUESTS, SECONDS, STATE
from tests.examples import examples
from tests.exporters.sinks.lines import parsed, plain, plain_for_victoria_metrics
from tests.exporters.sinks.node_ticks import node_tick

IDENTITY = Identity("prod", "dc1", "r1", "10.0.0.1")


def sample(values: dict[Series, Derived], time_s: float = 1_795_000_000.0) -> Sample:
    return Sample("10.0.0.1", Tick(time_s), values, {}, ())


@pytest.fixture(scope="module")
def influxdb() -> Sink[Any]:
    return sink_of("influxdb+http://127.0.0.1:1/casstat")


def lines_of(
    sink: Sink[Any],
    catalogue: Mapping[str, Metric],
    identity: Identity,
    encoded: Sample,
    placement: Placement = NOWHERE,
) -> list[bytes]:
    return sink.encode(replace(node_tick(catalogue, identity, encoded), placement=placement))


def durations(*counts: int) -> Buckets:
    return Buckets(upper_bounds_of("seconds", 128), (*counts, *[0] * (128 - len(counts))))


def test_counters_gauges_and_histograms_become_fields() -> None:
    buckets = durations(0, 3, 96, 1)
    points = dict(
        rows(
            CATALOGUE,
            sample(
                {
                    REQUESTS: Rate(100.0, 2.0),
                    SECONDS: Rate(0.5, 2.0),
                    DURATIONS: buckets,
                    BYTES: 12.5,
                    STATE: "NORMAL",
                    ("unknown",): 1.0,
                    ("load_bytes", "an unexpected label"): 1.0,
                }
            ),
        )
    )
    assert points == {
        REQUESTS: {"per_s": 50.0},
        SECONDS: {"per_s": 0.25},
        BYTES: {"value": 12.5},
        DURATIONS: {
            "count": 100.0,
            "mean": 0.005,
            "p50": quantile(buckets, 0.5),
            "p95": quantile(buckets, 0.95),
            "p99": quantile(buckets, 0.99),
            "p999": quantile(buckets, 0.999),
            "max": highest(buckets),
        },
    }


def test_unknown_values_are_absent() -> None:
    unknown: dict[Series, Derived] = {
        REQUESTS: Rate(0.0, 2.0),
        SECONDS: Rate(0.0, 2.0),
        DURATIONS: durations(),
        BYTES: nan,
    }
    assert dict(rows(CATALOGUE, sample(unknown)))[DURATIONS] == {"count": 0.0}
    assert BYTES not in dict(rows(CATALOGUE, sample(unknown)))
    # No mean can be computed from two counters whose increases cover different periods.
    apart: dict[Series, Derived] = {REQUESTS: Rate(9.0, 2.0), SECONDS: Rate(1.0, 60.0), DURATIONS: durations(1)}
    assert "mean" not in dict(rows(CATALOGUE, sample(apart)))[DURATIONS]


@given(st.integers(0, 4_000_000_000_000))
@settings(max_examples=examples(50))
def test_a_point_has_the_time_of_its_tick(influxdb: Sink[Any], milliseconds: int) -> None:
    encoded = sample({BYTES: 1.0}, milliseconds / 1000)
    assert time_ms(encoded) == milliseconds
    (line,) = lines_of(influxdb, CATALOGUE, IDENTITY, encoded)
    assert parsed(line.decode())[3] == milliseconds * 10**6


NUMBERS = st.floats() | st.sampled_from([0.0, 1.0, inf, nan, 1e-5, 1e22])
TEXT = st.text(st.characters(exclude_categories=()) | st.sampled_from('\\,= "\n\r'), max_size=6)
LABELLED = Metric("requests_total", CATALOGUE["requests_total"].kind, "1", "", ("operation", "odd,=\\ key"))
CHOICES = {**CATALOGUE, "requests_total": LABELLED}


@given(
    TEXT,
    TEXT,
    NUMBERS,
    st.floats(0, allow_infinity=False),
    st.floats(1e-3, 1e3),
    st.lists(st.integers(0, 9), max_size=9),
)
@settings(max_examples=examples(150), deadline=None)
def test_lines_have_the_measurements_and_fields_of_the_rows(
    influxdb: Sink[Any], node: str, label: str, gauge: float, increase: float, elapsed: float, counts: list[int]
) -> None:
    encoded = sample(
        {
            ("requests_total", label, "b"): Rate(increase, elapsed),
            BYTES: gauge,
            STATE: "text",
            ("request_duration_seconds", label): durations(*counts),
            ("unknown", "x"): 3.0,
        }
    )
    identity = Identity(node=node)
    lines = lines_of(influxdb, CHOICES, identity, encoded)
    assert all(b"\n" not in line for line in lines)
    points = [parsed(line.decode()) for line in lines]
    expected = list(rows(CHOICES, encoded))
    assert [name for name, *_ in points] == [series[0] for series, _ in expected]
    for (_, _, escaped, _), (_, fields) in zip(points, expected, strict=True):
        # Numbers in lines have twelve significant digits.
        assert escaped == pytest.approx(fields, rel=1e-11)


@given(TEXT)
@settings(max_examples=examples(150))
def test_both_stores_read_an_escaped_name_in_the_same_way(text: str) -> None:
    escaped = key(text)
    assert plain(escaped) == plain_for_victoria_metrics(escaped)
    blank = "".join(" " if letter.isspace() or letter < " " else letter for letter in text)
    read = "".join(" " if letter.isspace() or letter < " " else letter for letter in plain(escaped))
    # Backslashes, which the two stores read differently, are written as slashes.
    assert read.replace("/", "\\") == blank.replace("/", "\\")
    assert not escaped.endswith("\\")


def test_tags_follow_the_nodes_identity(influxdb: Sink[Any]) -> None:
    encoded = sample({REQUESTS: Rate(1.0, 1.0)})
    before = parsed(lines_of(influxdb, CATALOGUE, Identity(node="n"), encoded)[0].decode())
    after = parsed(lines_of(influxdb, CATALOGUE, IDENTITY, encoded)[0].decode())
    assert before[1] == {"node": "n", "operation": "Read"}
    assert after[1] == {"cluster": "prod", "dc": "dc1", "rack": "r1", "node": "10.0.0.1", "operation": "Read"}


def test_machine_series_are_tagged_with_their_machine(influxdb: Sink[Any]) -> None:
    shared: dict[Series, Derived] = {
        ("node_memory_Cached_bytes",): 1.0,
        ("node_network_receive_bytes_total", "eth0"): Rate(1.0, 1.0),
        ("cassandra_compaction_pending",): 1.0,
    }

    def owners(placement: Placement) -> list[dict[str, str]]:
        lines = lines_of(influxdb, SHIPPED, IDENTITY, sample(shared), placement)
        tags = [parsed(line.decode())[1] for line in lines]
        return [
            {name: value for name, value in line_tags.items() if name in ("machine", "network")} for line_tags in tags
        ]

    assert owners(Placement("m1", "net:[1]")) == [{"machine": "m1"}, {"machine": "m1", "network": "net:[1]"}, {}]
    assert owners(Placement("", "net:[1]")) == [{}, {}, {}]


def test_the_mean_equals_the_mean_in_the_row() -> None:
    encoded = sample({REQUESTS: Rate(30.0, 1.5), SECONDS: Rate(0.1, 1.5), DURATIONS: durations(30)})
    assert dict(rows(CATALOGUE, encoded))[DURATIONS]["mean"] == pytest.approx(ratio(encoded, SECONDS, REQUESTS))

"""Remote write sends what a scrape of /metrics at every tick would store."""

import json
from collections.abc import Iterable
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.core import GaugeMetricFamily

from collector.model.metric import Series, Value
from exporters.metrics_page.rendering import Options
from exporters.sinks.parts.remote_write import HISTOGRAM_SUFFIXES, TYPES, RemoteWriteFormat, RequestsV2, request_v1
from exporters.sinks.parts.tick_encoder import TickEncoder
from tests.examples import examples, some_of
from tests.exporters.metrics_page.complete_page import complete_page
from tests.exporters.metrics_page.parsed import any_values, one_of_each, parsed
from tests.exporters.sinks.page_ticks import (
    BEGIN_S,
    EXTERNAL,
    IDENTITY,
    SELF_METRICS,
    node_tick,
    pages_of,
)
from tests.exporters.sinks.remote_write.messages import Decoded, compressed, decode_v1, decode_v2


def stored(decoded: Iterable[Decoded]) -> dict[tuple[str, frozenset[tuple[str, str]]], float | None]:
    """Return the values by name and labels, without the labels that the push adds and the series of the scrape."""
    added = {"__name__", "instance", *EXTERNAL}
    return {
        (sample.name, frozenset((name, value) for name, value in sample.labels if name not in added)): sample.value
        for sample in decoded
        if not sample.name.startswith((*SELF_METRICS, "up"))
    }


@given(st.lists(any_values(), min_size=1, max_size=4))
@settings(max_examples=examples(50), deadline=None)
def test_every_tick_has_the_series_of_the_page(readings: list[dict[Series, Value]]) -> None:
    encoder = TickEncoder(RemoteWriteFormat(), Options(), EXTERNAL)
    ticks = [node_tick(number, values) for number, values in enumerate(readings)]
    for tick, page in zip(ticks, pages_of(ticks), strict=True):
        decoded = decode_v1(compressed(request_v1(encoder.encode(tick))))
        values = {key: value for key, value in stored(decoded).items() if value is not None}
        assert values == page
        assert {sample.time_ms for sample in decoded} == {round(tick.snapshot.tick.time_s * 1000)}


def test_a_tick_from_memory_has_the_series_of_the_same_tick_from_the_journal() -> None:
    """Also if the limit leaves metrics out: those that only a running agent has do not count."""
    from_journal = [node_tick(number, one_of_each()) for number in range(2)]
    everything = len(encoder_of(Options()).encode(from_journal[0]))
    for limit in some_of(range(everything - 40, everything + 5)):
        options = Options(limit=limit)
        journal, memory = encoder_of(options), encoder_of(options)
        for tick in from_journal:
            live = replace(
                tick, live=lambda: [GaugeMetricFamily(f"only_live_{number}", "Live.", 1.0) for number in range(9)]
            )
            expected, points = journal.encode(tick), memory.encode(live)
            assert [point for point in points if b"only_live_" not in point[0]] == expected
            assert len(points) == len(expected) + 9


def test_ticks_that_are_read_again_after_damage_do_not_count_twice() -> None:
    ticks = [node_tick(number, one_of_each()) for number in range(8)]
    whole = encoder_of(Options())
    points = [whole.encode(tick) for tick in ticks[:5]]
    state = json.loads(json.dumps(whole.state()))
    points += [whole.encode(tick) for tick in ticks[5:]]
    restarted = encoder_of(Options())
    restarted.restore(state)
    assert [restarted.encode(tick) for tick in ticks[2:]] == [[], [], [], *points[5:]]
    # Once a later tick was encoded, the clock may be set back.
    assert restarted.encode(node_tick(9, one_of_each(), shift_s=-8.0)) != []


def encoder_of(options: Options) -> TickEncoder:
    return TickEncoder(RemoteWriteFormat(), options, EXTERNAL)


def test_2_0_carries_the_same_series_with_types_and_help() -> None:
    series_format = RemoteWriteFormat()
    encoder = TickEncoder(series_format, Options(), EXTERNAL)
    points = encoder.encode(node_tick(0, one_of_each()))
    first = decode_v1(compressed(request_v1(points)))
    second = decode_v2(compressed(RequestsV2(series_format.metadata).request(points)))
    assert [sample[:3] for sample in second] == [sample[:3] for sample in first]
    kinds = {sample.name: (sample.kind, sample.help) for sample in second}
    page = parsed(complete_page(openmetrics=False)).kinds
    for name, (kind, help_text) in kinds.items():
        family = next(filter(page.get, (name, *(name.removesuffix(suffix) for suffix in HISTOGRAM_SUFFIXES))), "")
        # The text format has no type for info metrics.
        assert name == "up" or name.endswith("_info") or (kind, bool(help_text)) == (TYPES.get(page[family], 0), True)


def test_a_series_that_disappears_is_marked_once() -> None:
    gauge, counter = ("cassandra_load_bytes",), ("cassandra_exceptions_total",)
    # The load is read every minute, so the readings of the first three ticks are kept for 2.5 minutes.
    last = 2 + 150
    encoder = TickEncoder(RemoteWriteFormat(), Options(), EXTERNAL)
    for number in range(160):
        values: dict[Series, Value] = {counter: number}
        if number < 3:
            values[gauge] = 5.0
        decoded = decode_v1(compressed(request_v1(encoder.encode(node_tick(number, values)))))
        loads = [sample.value for sample in decoded if sample.name == gauge[0]]
        marked = [sample.name for sample in decoded if sample.value is None]
        assert loads == [5.0] * (number <= last) + [None] * (number == last + 1)
        assert marked == [gauge[0]] * (number == last + 1)


def test_after_a_long_pause_all_series_end_when_the_page_would_drop_them() -> None:
    counter = ("cassandra_exceptions_total",)
    encoder = TickEncoder(RemoteWriteFormat(), Options(), EXTERNAL)
    encoder.encode(node_tick(0, {counter: 1}))
    decoded = decode_v1(compressed(request_v1(encoder.encode(node_tick(100, {counter: 2}, "two")))))
    counts = [(sample.time_ms - BEGIN_S * 1000, sample.value) for sample in decoded if sample.name == counter[0]]
    assert counts == [(30_000, None), (100_000, 2.0)]


def test_series_of_an_earlier_session_end_at_once() -> None:
    counter, gauge = ("cassandra_exceptions_total",), ("cassandra_load_bytes",)
    encoder = TickEncoder(RemoteWriteFormat(), Options(), EXTERNAL)
    encoder.encode(node_tick(0, {counter: 1, gauge: 5.0}))
    decoded = decode_v1(compressed(request_v1(encoder.encode(node_tick(2, {counter: 1}, "two")))))
    assert [sample.name for sample in decoded if sample.value is None] == [gauge[0]]


def test_an_interval_selects_the_first_tick_of_each() -> None:
    counter, gauge = ("cassandra_exceptions_total",), ("cassandra_load_bytes",)
    encoder = TickEncoder(RemoteWriteFormat(), Options(), EXTERNAL, 15.0)
    times = []
    for number in range(100):
        # The gauge disappears with the second session; its end is sent with the next sample.
        values: dict[Series, Value] = {counter: number} if number >= 40 else {counter: number, gauge: 5.0}
        if number in (35, 36):
            continue
        decoded = decode_v1(compressed(request_v1(encoder.encode(node_tick(number, values, str(number >= 40))))))
        times += [number for sample in decoded if sample.name == counter[0]]
        assert [sample.name for sample in decoded if sample.value is None] == [gauge[0]] * (number == 50)
        if number == 65:
            assert stored(decoded)["casstat_ticks_total", frozenset(IDENTITY.labels().items())] == 26.0
    # The intervals begin at multiples of 15 s since the epoch; 35 and 36 are missing.
    assert times == [0, 5, 20, 37, 50, 65, 80, 95]


def test_times_that_the_format_cannot_hold_are_left_out() -> None:
    encoder = TickEncoder(RemoteWriteFormat(), Options(), EXTERNAL)
    assert encoder.encode(node_tick(0, {("cassandra_exceptions_total",): 1}, shift_s=5e9)) == []
    assert encoder.encode(node_tick(0, {("cassandra_exceptions_total",): 1}, shift_s=-BEGIN_S)) != []

"""MBeans: names, requests, and validation of responses."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from collector.model.mbean import (
    METRICS,
    VALUES,
    Labels,
    MBean,
    MBeanRequest,
    counter,
    histogram,
    mbean_requests,
    properties,
    text,
)
from collector.model.metric import ScrapeInterval, Value, Values
from tests.collector.nodes import gauge
from tests.every import every

TABLE = METRICS + "type=Table,keyspace={keyspace},scope={table},name="
POOL = METRICS + "type=ThreadPools,path={path},scope={pool},name="
REQUEST = METRICS + "type=ClientRequest,scope={operation},name="
READ_AND_WRITE = {"operation": ("Read", "Write")}


def every_tick(bean: MBean, _labels: Mapping[str, str]) -> ScrapeInterval | None:
    return bean.metric.scrape_interval


def requests_for(beans: Sequence[MBean], labels: Mapping[str, Sequence[Labels]]) -> list[MBeanRequest]:
    return mbean_requests(beans, labels, every_tick)


def single_request(bean: MBean, labels: Labels | None = None) -> MBeanRequest:
    """Return the request for a bean, asserting that there is only one."""
    (mbean_request,) = requests_for([bean], {bean.family: [labels or {}]})
    return mbean_request


def values_of(bean: MBean, value: Any, status: int = 200) -> Values:
    return single_request(bean).values({"value": value, "status": status})


def body_of(mbean_request: MBeanRequest) -> dict[str, Any]:
    body = json.loads(mbean_request.body)
    assert isinstance(body, dict)
    return body


@every(
    ("name", "expected"),
    [
        ("d:type=A", {"type": "A"}),
        ("d:type=A,scope=B,name=C", {"type": "A", "scope": "B", "name": "C"}),
        ("d:name=C,scope=B,type=A", {"name": "C", "scope": "B", "type": "A"}),
        ("java.lang:name=G1 Young Generation,type=GC", {"name": "G1 Young Generation", "type": "GC"}),
        ('d:scope="a,b",type=A', {"scope": '"a,b"', "type": "A"}),
        ('d:scope="a=b,c=d",type=A', {"scope": '"a=b,c=d"', "type": "A"}),
        (r'd:scope="say \"hi, you\"",type=A', {"scope": r'"say \"hi, you\""', "type": "A"}),
        ('d:a="1,2",b="3,4"', {"a": '"1,2"', "b": '"3,4"'}),
        ('d:scope="",type=A', {"scope": '""', "type": "A"}),
        ("d:name=a:b,type=A", {"name": "a:b", "type": "A"}),
    ],
)
def test_an_object_name_is_split_into_properties(name: str, expected: dict[str, str]) -> None:
    assert properties(name) == expected


plain = st.text(
    st.characters(exclude_characters=',=:"*?\\\n{}', exclude_categories=("Cs", "Cc")), min_size=1, max_size=8
)
quoted = st.text(st.characters(exclude_characters='"*?\\\n', exclude_categories=("Cs", "Cc")), max_size=12).map(
    lambda inner: f'"{inner}"'
)


@given(st.dictionaries(plain, st.one_of(plain, quoted), min_size=1, max_size=5))
def test_any_object_name_is_split_into_its_properties(parts: dict[str, str]) -> None:
    assert properties("domain:" + ",".join(f"{key}={value}" for key, value in parts.items())) == parts


@given(plain, st.one_of(plain, quoted))
def test_labels_found_by_a_search_lead_back_to_the_same_mbean(keyspace: str, table: str) -> None:
    bean = gauge("sstables", "Text.", TABLE + "LiveSSTableCount")
    name = f"{METRICS}keyspace={keyspace},name=LiveSSTableCount,scope={table},type=Table"
    (labels,) = bean.labels([name])
    assert labels == {"keyspace": keyspace, "table": table}
    wanted = body_of(single_request(bean, labels))["mbean"]
    assert properties(wanted) == properties(name)


def test_fixed_labels_need_no_search() -> None:
    bean = counter("timeouts_total", "Text.", REQUEST + "Timeouts", only=READ_AND_WRITE)
    assert bean.search == ""
    assert bean.labels([]) == [{"operation": "Read"}, {"operation": "Write"}]


def test_an_mbean_without_labels_needs_no_search() -> None:
    bean = gauge("pending", "Text.", METRICS + "type=Compaction,name=PendingTasks")
    assert bean.search == ""
    assert bean.labels([]) == [{}]


def test_a_search_pattern_has_an_asterisk_for_each_unknown_label() -> None:
    assert gauge("active", "Text.", POOL + "ActiveTasks").search == (
        METRICS + "type=ThreadPools,path=*,scope=*,name=ActiveTasks"
    )


def test_fixed_labels_are_searched_for_once() -> None:
    bean = counter("operations_total", "Text.", TABLE + "{operation}Latency", only={"operation": ("Read", "Range")})
    assert bean.search == METRICS + "type=Table,keyspace=*,scope=*,name=ReadLatency"
    labels = bean.labels([f"{METRICS}keyspace=ks,name=ReadLatency,scope={table},type=Table" for table in ("t1", "t2")])
    assert labels == [
        {"keyspace": "ks", "table": table, "operation": operation}
        for table in ("t1", "t2")
        for operation in ("Read", "Range")
    ]


def test_an_empty_search_gives_no_labels() -> None:
    assert gauge("active", "Text.", POOL + "ActiveTasks").labels([]) == []


def test_the_attributes_of_one_mbean_are_read_in_one_request() -> None:
    memory = "java.lang:type=Memory"
    beans = [
        gauge("heap_used", "Text.", memory, "HeapMemoryUsage.used"),
        gauge("heap_max", "Text.", memory, "HeapMemoryUsage.max"),
        gauge("other_used", "Text.", memory, "NonHeapMemoryUsage.used"),
    ]
    (mbean_request,) = requests_for(beans, {beans[0].family: [{}]})
    assert body_of(mbean_request) == {
        "type": "read",
        "mbean": memory,
        "attribute": ["HeapMemoryUsage", "NonHeapMemoryUsage"],
    }
    answer = {"HeapMemoryUsage": {"used": 5, "max": 9}, "NonHeapMemoryUsage": {"used": 7, "max": -1}}
    assert mbean_request.values({"value": answer, "status": 200}) == {
        ("heap_used",): 5,
        ("heap_max",): 9,
        ("other_used",): 7,
    }


def test_parts_of_one_attribute_are_read_once() -> None:
    memory = "java.lang:type=Memory"
    beans = [gauge(part, "Text.", memory, f"HeapMemoryUsage.{part}") for part in ("used", "max")]
    (mbean_request,) = requests_for(beans, {beans[0].family: [{}]})
    assert body_of(mbean_request)["attribute"] == "HeapMemoryUsage"
    assert mbean_request.values({"value": {"used": 5, "max": 9}, "status": 200}) == {("used",): 5, ("max",): 9}


def test_buckets_are_read_with_an_operation() -> None:
    beans = [
        counter("requests_total", "Text.", REQUEST + "Latency", only=READ_AND_WRITE),
        histogram("request_seconds", "Text.", REQUEST + "Latency", only=READ_AND_WRITE),
    ]
    bodies = [
        body_of(mbean_request)
        for mbean_request in requests_for(beans, {bean.family: bean.labels([]) for bean in beans})
    ]
    for operation in READ_AND_WRITE["operation"]:
        name = REQUEST.format(operation=operation) + "Latency"
        assert {"type": "read", "mbean": name, "attribute": "Count"} in bodies
        assert {"type": "exec", "mbean": name, "operation": VALUES} in bodies
    assert len(bodies) == 4


def test_attributes_that_are_reset_by_reading_are_never_read() -> None:
    beans = [histogram("request_seconds", "Text.", REQUEST + "Latency", only=READ_AND_WRITE)]
    mbean_requests = list(requests_for(beans, {beans[0].family: beans[0].labels([])}))
    assert mbean_requests
    for mbean_request in mbean_requests:
        assert "attribute" not in body_of(mbean_request)
        assert "RecentValues" not in mbean_request.body


def test_attributes_with_different_scrape_intervals_are_requested_separately() -> None:
    name = METRICS + "type=Cache,scope={cache},name=Size"
    beans = [gauge("often", "Text.", name), gauge("rarely", "Text.", name, scrape_interval=ScrapeInterval.SLOW)]
    mbean_requests_made = requests_for(beans, {beans[0].family: [{"cache": "KeyCache"}]})
    assert [(mbean_request.scrape_interval, len(mbean_request.parts)) for mbean_request in mbean_requests_made] == [
        (ScrapeInterval.TICK, 1),
        (ScrapeInterval.SLOW, 1),
    ]


def test_unselected_mbeans_are_not_requested() -> None:
    bean = gauge("pending", "Text.", METRICS + "type=Compaction,name=PendingTasks")
    assert mbean_requests([bean], {bean.family: [{}]}, lambda *_: None) == []
    assert requests_for([bean], {}) == []


NUMBER = gauge("number", "Text.", "d:type=A")
WORDS = text("words", "Text.", "d:type=A", "Words")
BUCKETS = histogram("seconds", "Text.", "d:type=A")


@every("value", [0, 1, -5, 2**62, 0.25, -1.5])
def test_a_finite_number_is_kept(value: Value) -> None:
    assert values_of(NUMBER, value) == {("number",): value}


MALFORMED_NUMBERS = [
    None,
    math.nan,
    math.inf,
    -math.inf,
    True,
    False,
    "5",
    "NaN",
    "ERROR: javax.management.AttributeNotFoundException : No such attribute: Value",
    [5],
    [],
    {"Value": 5},
    10**400,
]


@every("value", MALFORMED_NUMBERS)
def test_a_malformed_number_is_absent(value: Any) -> None:
    assert values_of(NUMBER, value) == {}


@every("value", MALFORMED_NUMBERS)
def test_a_malformed_attribute_does_not_affect_others(value: Any) -> None:
    beans = [gauge("good", "Text.", "d:type=A", "Good"), gauge("bad", "Text.", "d:type=A", "Bad")]
    (mbean_request,) = requests_for(beans, {beans[0].family: [{}]})
    assert mbean_request.values({"value": {"Good": 7, "Bad": value}, "status": 200}) == {("good",): 7}


def test_a_missing_attribute_is_absent() -> None:
    beans = [gauge("good", "Text.", "d:type=A", "Good"), gauge("bad", "Text.", "d:type=A", "Bad")]
    (mbean_request,) = requests_for(beans, {beans[0].family: [{}]})
    assert mbean_request.values({"value": {"Good": 7}, "status": 200}) == {("good",): 7}


@every("status", [404, 403, 500, None, "200"])
def test_a_response_with_an_error_status_has_no_values(status: Any) -> None:
    answer = {"error_type": "javax.management.InstanceNotFoundException", "error": "d:type=A", "value": 5}
    assert single_request(NUMBER).values({**answer, "status": status}) == {}
    assert single_request(NUMBER).values({"value": 5}) == {}


def test_a_response_without_a_value_has_no_values() -> None:
    for bean in (NUMBER, WORDS, BUCKETS):
        assert single_request(bean).values({"status": 200}) == {}


@every("value", [None, 5, ["NORMAL"], {"a": "b"}, "ERROR: javax.management.ReflectionException"])
def test_a_malformed_text_is_absent(value: Any) -> None:
    assert values_of(WORDS, value) == {}


def test_a_text_is_kept() -> None:
    assert values_of(WORDS, "NORMAL") == {("words",): "NORMAL"}


def test_bucket_counts_are_kept() -> None:
    assert values_of(BUCKETS, [0, 3, 2**40]) == {("seconds",): (0, 3, 2**40)}


@every("value", [None, [], [1, 2.0], [1, None], [1, "2"], [True, 2], 5, "ERROR: no", {"0": 1}, [[1]]])
def test_malformed_bucket_counts_are_absent(value: Any) -> None:
    assert values_of(BUCKETS, value) == {}


@every("value", [None, 5, "ERROR: no such attribute", [], {"max": 5}, {"used": None}])
def test_a_value_is_absent_if_its_part_of_a_composite_is_missing(value: Any) -> None:
    assert values_of(gauge("used", "Text.", "d:type=A", "Usage.used"), value) == {}


anything = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=6), inner, max_size=4)),
    max_leaves=12,
)


@given(anything)
def test_any_json_response_gives_valid_values(value: Any) -> None:
    for bean in (NUMBER, WORDS, BUCKETS, gauge("part", "Text.", "d:type=A", "Usage.used")):
        for decoded in values_of(bean, value).values():
            assert isinstance(decoded, int | float | str | tuple)
            assert not isinstance(decoded, bool)
            assert not isinstance(decoded, float) or math.isfinite(decoded)

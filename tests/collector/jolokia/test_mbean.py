"""MBeans: their names, the requests made for them, and what is believed of the answers."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.jolokia.mbean import (
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

TABLE = METRICS + "type=Table,keyspace={keyspace},scope={table},name="
POOL = METRICS + "type=ThreadPools,path={path},scope={pool},name="
REQUEST = METRICS + "type=ClientRequest,scope={operation},name="
BOTH = {"operation": ("Read", "Write")}


def every_tick(bean: MBean, _labels: Mapping[str, str]) -> ScrapeInterval | None:
    return bean.metric.scrape_interval


def asked(beans: Sequence[MBean], known: Mapping[str, Sequence[Labels]]) -> list[MBeanRequest]:
    return mbean_requests(beans, known, every_tick)


def alone(bean: MBean, labels: Labels | None = None) -> MBeanRequest:
    """Return the one question for one bean."""
    (question,) = asked([bean], {bean.family: [labels or {}]})
    return question


def answered(bean: MBean, value: Any, status: int = 200) -> Values:
    return alone(bean).values({"value": value, "status": status})


def request(question: MBeanRequest) -> dict[str, Any]:
    found = json.loads(question.body)
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
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
def test_an_object_name_is_taken_apart(name: str, expected: dict[str, str]) -> None:
    assert properties(name) == expected


plain = st.text(
    st.characters(exclude_characters=',=:"*?\\\n{}', exclude_categories=("Cs", "Cc")), min_size=1, max_size=8
)
quoted = st.text(st.characters(exclude_characters='"*?\\\n', exclude_categories=("Cs", "Cc")), max_size=12).map(
    lambda inner: f'"{inner}"'
)


@given(st.dictionaries(plain, st.one_of(plain, quoted), min_size=1, max_size=5))
def test_any_object_name_is_taken_apart_again(parts: dict[str, str]) -> None:
    assert properties("domain:" + ",".join(f"{key}={value}" for key, value in parts.items())) == parts


@given(plain, st.one_of(plain, quoted))
def test_found_labels_lead_back_to_the_bean_they_came_from(keyspace: str, table: str) -> None:
    bean = gauge("sstables", "Text.", TABLE + "LiveSSTableCount")
    name = f"{METRICS}keyspace={keyspace},name=LiveSSTableCount,scope={table},type=Table"
    (labels,) = bean.labels([name])
    assert labels == {"keyspace": keyspace, "table": table}
    wanted = request(alone(bean, labels))["mbean"]
    assert properties(wanted) == properties(name)


def test_labels_without_a_hole_to_search_for_are_known_beforehand() -> None:
    bean = counter("timeouts_total", "Text.", REQUEST + "Timeouts", only=BOTH)
    assert bean.search == ""
    assert bean.labels([]) == [{"operation": "Read"}, {"operation": "Write"}]


def test_a_bean_without_labels_exists_once() -> None:
    bean = gauge("pending", "Text.", METRICS + "type=Compaction,name=PendingTasks")
    assert bean.search == ""
    assert bean.labels([]) == [{}]


def test_a_search_pattern_has_a_star_for_each_label_that_is_not_known() -> None:
    assert gauge("active", "Text.", POOL + "ActiveTasks").search == (
        METRICS + "type=ThreadPools,path=*,scope=*,name=ActiveTasks"
    )


def test_a_search_pattern_finds_a_bean_once_for_all_labels_that_are_known() -> None:
    bean = counter("operations_total", "Text.", TABLE + "{operation}Latency", only={"operation": ("Read", "Range")})
    assert bean.search == METRICS + "type=Table,keyspace=*,scope=*,name=ReadLatency"
    found = bean.labels([f"{METRICS}keyspace=ks,name=ReadLatency,scope={table},type=Table" for table in ("t1", "t2")])
    assert found == [
        {"keyspace": "ks", "table": table, "operation": operation}
        for table in ("t1", "t2")
        for operation in ("Read", "Range")
    ]


def test_nothing_found_is_nothing_to_ask_for() -> None:
    assert gauge("active", "Text.", POOL + "ActiveTasks").labels([]) == []


def test_attributes_of_one_bean_are_one_request() -> None:
    memory = "java.lang:type=Memory"
    beans = [
        gauge("heap_used", "Text.", memory, "HeapMemoryUsage.used"),
        gauge("heap_max", "Text.", memory, "HeapMemoryUsage.max"),
        gauge("other_used", "Text.", memory, "NonHeapMemoryUsage.used"),
    ]
    (question,) = asked(beans, {beans[0].family: [{}]})
    assert request(question) == {
        "type": "read",
        "mbean": memory,
        "attribute": ["HeapMemoryUsage", "NonHeapMemoryUsage"],
    }
    answer = {"HeapMemoryUsage": {"used": 5, "max": 9}, "NonHeapMemoryUsage": {"used": 7, "max": -1}}
    assert question.values({"value": answer, "status": 200}) == {
        ("heap_used",): 5,
        ("heap_max",): 9,
        ("other_used",): 7,
    }


def test_parts_of_one_attribute_are_asked_for_once() -> None:
    memory = "java.lang:type=Memory"
    beans = [gauge(part, "Text.", memory, f"HeapMemoryUsage.{part}") for part in ("used", "max")]
    (question,) = asked(beans, {beans[0].family: [{}]})
    assert request(question)["attribute"] == "HeapMemoryUsage"
    assert question.values({"value": {"used": 5, "max": 9}, "status": 200}) == {("used",): 5, ("max",): 9}


def test_buckets_come_by_an_operation_beside_the_attributes() -> None:
    beans = [
        counter("requests_total", "Text.", REQUEST + "Latency", only=BOTH),
        histogram("request_seconds", "Text.", REQUEST + "Latency", only=BOTH),
    ]
    found = [request(question) for question in asked(beans, {bean.family: bean.labels([]) for bean in beans})]
    for operation in BOTH["operation"]:
        name = REQUEST.format(operation=operation) + "Latency"
        assert {"type": "read", "mbean": name, "attribute": "Count"} in found
        assert {"type": "exec", "mbean": name, "operation": VALUES} in found
    assert len(found) == 4


def test_no_attribute_that_reading_changes_is_ever_asked_for() -> None:
    beans = [histogram("request_seconds", "Text.", REQUEST + "Latency", only=BOTH)]
    for question in asked(beans, {beans[0].family: beans[0].labels([])}):
        assert "attribute" not in request(question)
        assert "RecentValues" not in question.body


def test_what_is_read_more_rarely_is_a_request_of_its_own() -> None:
    name = METRICS + "type=Cache,scope={cache},name=Size"
    beans = [gauge("often", "Text.", name), gauge("rarely", "Text.", name, scrape_interval=ScrapeInterval.SLOW)]
    found = asked(beans, {beans[0].family: [{"cache": "KeyCache"}]})
    assert [(question.scrape_interval, len(question.parts)) for question in found] == [
        (ScrapeInterval.TICK, 1),
        (ScrapeInterval.SLOW, 1),
    ]


def test_what_is_not_wanted_is_not_asked_for() -> None:
    bean = gauge("pending", "Text.", METRICS + "type=Compaction,name=PendingTasks")
    assert mbean_requests([bean], {bean.family: [{}]}, lambda *_: None) == []
    assert asked([bean], {}) == []


NUMBER = gauge("number", "Text.", "d:type=A")
WORDS = text("words", "Text.", "d:type=A", "Words")
BUCKETS = histogram("seconds", "Text.", "d:type=A")


@pytest.mark.parametrize("value", [0, 1, -5, 2**62, 0.25, -1.5])
def test_a_finite_number_is_taken_as_it_is(value: Value) -> None:
    assert answered(NUMBER, value) == {("number",): value}


NO_NUMBERS = [
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


@pytest.mark.parametrize("value", NO_NUMBERS, ids=lambda value: str(value)[:12])
def test_what_is_no_finite_number_is_absent(value: Any) -> None:
    assert answered(NUMBER, value) == {}


@pytest.mark.parametrize("value", NO_NUMBERS, ids=lambda value: str(value)[:12])
def test_a_bad_attribute_spoils_its_own_value_only(value: Any) -> None:
    beans = [gauge("good", "Text.", "d:type=A", "Good"), gauge("bad", "Text.", "d:type=A", "Bad")]
    (question,) = asked(beans, {beans[0].family: [{}]})
    assert question.values({"value": {"Good": 7, "Bad": value}, "status": 200}) == {("good",): 7}


def test_a_missing_attribute_is_absent() -> None:
    beans = [gauge("good", "Text.", "d:type=A", "Good"), gauge("bad", "Text.", "d:type=A", "Bad")]
    (question,) = asked(beans, {beans[0].family: [{}]})
    assert question.values({"value": {"Good": 7}, "status": 200}) == {("good",): 7}


@pytest.mark.parametrize("status", [404, 403, 500, None, "200"])
def test_an_answer_of_another_status_holds_nothing(status: Any) -> None:
    answer = {"error_type": "javax.management.InstanceNotFoundException", "error": "d:type=A", "value": 5}
    assert alone(NUMBER).values({**answer, "status": status}) == {}
    assert alone(NUMBER).values({"value": 5}) == {}


def test_an_answer_without_a_value_holds_nothing() -> None:
    for bean in (NUMBER, WORDS, BUCKETS):
        assert alone(bean).values({"status": 200}) == {}


@pytest.mark.parametrize("value", [None, 5, ["NORMAL"], {"a": "b"}, "ERROR: javax.management.ReflectionException"])
def test_what_is_no_text_is_absent(value: Any) -> None:
    assert answered(WORDS, value) == {}


def test_a_text_is_taken_as_it_is() -> None:
    assert answered(WORDS, "NORMAL") == {("words",): "NORMAL"}


def test_buckets_are_taken_as_they_are() -> None:
    assert answered(BUCKETS, [0, 3, 2**40]) == {("seconds",): (0, 3, 2**40)}


@pytest.mark.parametrize("value", [None, [], [1, 2.0], [1, None], [1, "2"], [True, 2], 5, "ERROR: no", {"0": 1}, [[1]]])
def test_what_are_no_whole_counts_are_no_buckets(value: Any) -> None:
    assert answered(BUCKETS, value) == {}


@pytest.mark.parametrize("value", [None, 5, "ERROR: no such attribute", [], {"max": 5}, {"used": None}])
def test_a_composite_without_the_part_is_absent(value: Any) -> None:
    assert answered(gauge("used", "Text.", "d:type=A", "Usage.used"), value) == {}


anything = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8)),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=6), inner, max_size=4)),
    max_leaves=12,
)


@given(anything)
def test_no_answer_whatever_it_holds_is_an_error(value: Any) -> None:
    for bean in (NUMBER, WORDS, BUCKETS, gauge("part", "Text.", "d:type=A", "Usage.used")):
        for found in answered(bean, value).values():
            assert isinstance(found, int | float | str | tuple)
            assert not isinstance(found, bool)
            assert not isinstance(found, float) or math.isfinite(found)

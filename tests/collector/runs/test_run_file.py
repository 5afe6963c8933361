"""A run's metadata is read back as written; a malformed file is an error of one line."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector.printable import one_line
from collector.runs.run_file import FILE, NodeClock, Run, RunFileError, RunNode, is_run, read_run, run_of, write_run

NODE = RunNode(
    "10.0.0.1",
    "http://10.0.0.1:17199",
    "nodes/10.0.0.1",
    60,
    1_700_000_000.0,
    1_700_000_059.0,
    1.0,
    "0.1.0",
    (NodeClock(1_700_000_060.5, 0.25, 0.001), NodeClock(1_700_000_090.5, 0.35, 0.002)),
)
RUN = Run("r1", 1_699_999_999.5, 1_700_000_060.0, "0.1.0", {"size": "large"}, (NODE, RunNode("", "h", problem="down")))
TEXTS, NUMBERS = st.text(max_size=10), st.floats(-1e11, 1e11)
NODES = st.builds(
    RunNode,
    TEXTS,
    TEXTS,
    TEXTS,
    st.integers(0, 1 << 40),
    st.none() | NUMBERS,
    st.none() | NUMBERS,
    st.none() | NUMBERS,
    TEXTS,
    st.lists(st.builds(NodeClock, NUMBERS, NUMBERS, NUMBERS), max_size=2).map(tuple),
    TEXTS,
)
RUNS = st.builds(
    Run,
    TEXTS,
    NUMBERS,
    NUMBERS,
    TEXTS,
    st.dictionaries(TEXTS, TEXTS, max_size=2),
    st.lists(NODES, max_size=2).map(tuple),
)


@given(RUNS)
def test_a_run_is_read_back_as_written(run: Run) -> None:
    assert run_of(json.loads(json.dumps(run.content()))) == run


def test_unknown_fields_are_ignored() -> None:
    content = RUN.content()
    content["later"] = content["nodes"][0]["later"] = [1]
    assert run_of(content) == RUN


def test_the_offset_is_the_mean_of_the_measurements(tmp_path: Path) -> None:
    write_run(tmp_path, RUN)
    assert is_run(tmp_path)
    assert not is_run(tmp_path / "nodes")
    assert [node.offset_s() for node in read_run(tmp_path).nodes] == [pytest.approx(0.3), 0.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "not a run"),
        ("{}", "not a run"),
        ('{"schema_version": true}', "not a run"),
        ('{"schema_version": 2}', "schema version 2 is not supported (hint: update casstat)"),
        ('{"schema_version": 1}', "malformed field: 'name'"),
    ],
)
def test_a_malformed_file_is_an_error(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(RunFileError) as error:
        read_run(tmp_path)
    assert str(error.value) == message


JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner)
)


@given(st.data(), JSON)
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_a_field_of_another_type_is_either_accepted_or_an_error_of_one_line(data: st.DataObject, value: Any) -> None:
    content = RUN.content()
    holder = data.draw(st.sampled_from([content, content["nodes"][0], content["nodes"][0]["clocks"][0]]))
    holder[data.draw(st.sampled_from(sorted(holder)))] = value
    message = ""
    try:
        run_of(json.loads(json.dumps(content)))
    except RunFileError as error:
        message = str(error)
    assert message == one_line(message)

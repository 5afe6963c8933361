"""A run's metadata is read back as written; a malformed file is a one-line error."""

import json
import os
from dataclasses import replace
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector.merge.clock_correction import IDENTITY
from collector.printable import one_line
from collector.runs.run import Run
from collector.runs.run_file import FILE, RunFileError, content_of, is_finite, is_run, read_run, run_of, write_run
from tests.collector.runs.generated_runs import NODE, NUMBERS, RUN, RUNS, TEXTS
from tests.every import every


@given(RUNS)
def test_a_run_is_read_back_as_written(run: Run) -> None:
    assert run_of(json.loads(json.dumps(content_of(run)))) == run


@given(TEXTS)
def test_a_written_file_is_printable_and_read_back(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    folder = tmp_path_factory.mktemp("run")
    run = replace(RUN, name=name + "\x1b]52;c;\u202e\udcff")
    write_run(folder, run)
    assert all(line.isprintable() for line in (folder / FILE).read_text().split("\n"))
    assert read_run(folder) == run


def test_a_run_with_an_infinite_number_is_not_written(tmp_path: Path) -> None:
    write_run(tmp_path, RUN)
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_run(tmp_path, replace(RUN, end_s=inf))
    assert read_run(tmp_path) == RUN


@every("folder", ["/etc", "..", "nodes/../../x", "nodes/\0", "nodes/\udcff", ".", "nodes/\x1b", "//x"])
def test_a_directory_outside_the_run_is_an_error(folder: str) -> None:
    content = content_of(RUN)
    content["nodes"][0]["folder"] = folder
    with pytest.raises(RunFileError, match="is not a path inside the run's directory") as error:
        run_of(content)
    assert str(error.value) == one_line(error.value)


@pytest.mark.parametrize("offset_s", [1e308, -5e9, 10**400, float("nan")])
def test_an_impossible_offset_is_an_error(offset_s: float) -> None:
    content = content_of(RUN)
    content["nodes"][0]["clocks"][0]["offset_s"] = offset_s
    with pytest.raises(RunFileError, match="malformed field"):
        run_of(content)


@every("value", [10**400, -(10**400), inf, -inf, nan, True, "1", None])
def test_infinities_nan_and_other_types_are_not_finite_numbers(value: object) -> None:
    assert not is_finite(value)


def test_unknown_fields_are_ignored() -> None:
    content = content_of(RUN)
    content["later"] = content["nodes"][0]["later"] = [1]
    assert run_of(content) == RUN


def test_the_offset_changes_linearly_between_the_measurements(tmp_path: Path) -> None:
    write_run(tmp_path, RUN)
    assert is_run(tmp_path)
    assert not is_run(tmp_path / "nodes")
    measured, unmeasured = (node.clock_correction() for node in read_run(tmp_path).nodes)
    middle_s = (NODE.clocks[0].at_s + NODE.clocks[1].at_s) / 2
    assert measured.reference_s(middle_s + 0.26) == pytest.approx(middle_s, abs=1e-6)
    assert unmeasured == IDENTITY


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
def test_a_field_of_another_type_is_either_accepted_or_a_one_line_error(data: st.DataObject, value: Any) -> None:
    content = content_of(RUN)
    holder = data.draw(st.sampled_from([content, content["nodes"][0], content["nodes"][0]["clocks"][0]]))
    holder[data.draw(st.sampled_from(sorted(holder)))] = value
    message = ""
    try:
        run_of(json.loads(json.dumps(content)))
    except RunFileError as error:
        message = str(error)
    assert message == one_line(message)


def test_a_named_pipe_is_no_run(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / FILE)
    with pytest.raises(RunFileError, match="a named pipe"):
        read_run(tmp_path)

"""Sweeps survive their file, which is valid according to the documented JSON Schema; other content is refused."""

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.redaction.secret_forms import is_secret_name
from collector.runs.parameter_sweep import (
    FILE,
    GIVEN,
    RANDOM,
    Sweep,
    SweepFileError,
    SweepRun,
    SweepSettings,
    SweptParameter,
    read_sweep,
    sweep_content,
    sweep_of,
    write_sweep,
)
from tests.collector.runs.run_schema import schema_text, sweep_schema
from tests.every import every
from tests.exporters import golden

DOCUMENTED = Path(__file__).parents[3] / "docs" / "sweep.schema.json"
VALIDATOR = jsonschema.Draft202012Validator(sweep_schema())
TEXTS = st.text(max_size=10)
# The values of a secret parameter are not written.
NAMES = TEXTS.filter(lambda name: not is_secret_name(name))
WORDS = st.lists(TEXTS, max_size=3).map(tuple)
NUMBERS = st.floats(0, 1e10)
VALUES = st.lists(TEXTS, min_size=1, max_size=4, unique=True).map(tuple)
SETTINGS = st.builds(
    SweepSettings,
    st.lists(TEXTS, min_size=1, max_size=3).map(tuple),
    *([WORDS] * 6),
    st.none() | NUMBERS,
    NUMBERS,
    NUMBERS,
    TEXTS,
)
SWEEPS = st.builds(
    Sweep,
    TEXTS,
    NUMBERS,
    TEXTS,
    st.lists(st.builds(SweptParameter, NAMES, VALUES), min_size=1, max_size=3, unique_by=lambda item: item.name).map(
        tuple
    ),
    SETTINGS,
    st.sampled_from([RANDOM, GIVEN]),
    st.integers(0, 2**32),
    st.integers(1, 5),
    NUMBERS,
    TEXTS,
    st.lists(st.builds(SweepRun, st.just("runs/1"), NUMBERS, NUMBERS, TEXTS), max_size=2).map(tuple),
)
SWEEP = Sweep("s", 0.0, "1", (SweptParameter("a", ("1",)),), SweepSettings(("true",)), RANDOM, 1)


def test_the_documented_schema_is_current() -> None:
    golden.check(DOCUMENTED, schema_text(sweep_schema()))


@given(SWEEPS)
def test_sweeps_are_valid_and_survive_their_file(sweep: Sweep) -> None:
    content = json.loads(json.dumps(sweep_content(sweep)))
    VALIDATOR.validate(content)
    assert sweep_of(content) == sweep


def test_a_sweep_is_read_from_its_directory(tmp_path: Path) -> None:
    write_sweep(tmp_path, SWEEP)
    assert read_sweep(tmp_path) == SWEEP
    (tmp_path / FILE).write_text("[" * 100_000)
    with pytest.raises(SweepFileError, match="not JSON"):
        read_sweep(tmp_path)


def test_a_named_pipe_is_no_sweep(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / FILE)
    with pytest.raises(SweepFileError, match="a named pipe"):
        read_sweep(tmp_path)


def test_a_file_of_a_version_without_items_per_operation_is_read() -> None:
    content = sweep_content(SWEEP)
    del content["items_per_op"]
    assert sweep_of(content) == SWEEP


@every(
    ("change", "message"),
    [
        ({"schema_version": 2}, "schema version 2 is not supported"),
        ({"schema_version": "1"}, "not a sweep"),
        ({"name": 1}, "1 is not a string"),
        ({"begin_s": "x"}, "x is not a number"),
        ({"parameters": {}}, "is not a list"),
        ({"parameters": [{"name": "a", "values": []}]}, "has no values"),
        ({"parameters": [{"name": "a", "values": ["1", "1"]}]}, "the same value twice"),
        ({"settings": {"command": []}}, "no words"),
        ({"settings": None}, "malformed field"),
        ({"order": "reversed"}, "'reversed' is not an order"),
        ({"order_seed": -1}, "-1 is not a count"),
        ({"order_seed": True}, "True is not a count"),
        ({"repeats": 0}, "0 is not a count"),
        ({"items_per_op": 1}, "1 is not a string"),
        ({"runs": [{"folder": "../x", "begin_s": 0, "end_s": 0}]}, "not a path inside"),
        ({"runs": [{"folder": "/x", "begin_s": 0, "end_s": 0}]}, "not a path inside"),
        ({"runs": [{"folder": "runs/1"}]}, "malformed field"),
    ],
)
def test_malformed_content_is_refused_in_one_line(change: dict[str, Any], message: str) -> None:
    with pytest.raises(SweepFileError, match=message) as caught:
        sweep_of({**json.loads(json.dumps(sweep_content(SWEEP))), **change})
    assert str(caught.value).isprintable()


@given(SWEEPS)
def test_each_repeat_is_a_complete_pass_in_an_order_that_the_seed_determines(sweep: Sweep) -> None:
    schedule = list(sweep.schedule())
    combinations = sweep.combinations()
    assert len(schedule) == sweep.run_count
    assert [repeat for _, repeat in schedule] == sorted(repeat for _, repeat in schedule)
    assert Counter(schedule) == Counter(
        (index, repeat) for index in range(len(combinations)) for repeat in range(1, sweep.repeats + 1)
    )
    assert list(sweep.schedule()) == schedule
    if sweep.order == GIVEN:
        assert [index for index, _ in schedule] == [*range(len(combinations))] * sweep.repeats


def test_the_random_order_differs_between_repeats_and_seeds() -> None:
    """The order of a seed is part of the format, because a sweep may be resumed with another version of casstat."""
    parameters = (SweptParameter("a", ("1", "2", "3")), SweptParameter("b", ("x", "y")))
    orders = {
        seed: [
            [
                index
                for index, number in Sweep("s", 0.0, "1", parameters, SWEEP.settings, RANDOM, seed, 2).schedule()
                if number == repeat
            ]
            for repeat in (1, 2)
        ]
        for seed in (1, 2)
    }
    assert orders[1] == [[4, 3, 0, 2, 1, 5], [5, 3, 1, 2, 4, 0]]
    assert orders[1] != orders[2]


def test_combinations_are_in_the_given_order() -> None:
    parameters = (SweptParameter("a", ("1", "2")), SweptParameter("b", ("x", "y")))
    sweep = Sweep("s", 0.0, "1", parameters, SWEEP.settings, GIVEN, 0)
    assert [tuple(values.values()) for values in sweep.combinations()] == [
        ("1", "x"),
        ("1", "y"),
        ("2", "x"),
        ("2", "y"),
    ]

"""Every run that casstat writes is valid according to the documented JSON Schema."""

import json
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given

from collector.runs.run import Run
from collector.runs.run_file import content_of
from tests.collector.runs.generated_runs import RUN, RUNS
from tests.collector.runs.run_schema import run_schema, schema_text
from tests.exporters import golden

DOCUMENTED = Path(__file__).parents[3] / "docs" / "run.schema.json"
VALIDATOR = jsonschema.Draft202012Validator(run_schema())


def test_the_documented_schema_is_current() -> None:
    golden.check(DOCUMENTED, schema_text(run_schema()))


@given(RUNS)
def test_runs_are_valid(run: Run) -> None:
    VALIDATOR.validate(json.loads(json.dumps(content_of(run))))


@pytest.mark.parametrize(("key", "value"), [("schema_version", 2), ("name", 1), ("begin_s", None), ("nodes", {})])
def test_other_content_is_invalid(key: str, value: object) -> None:
    content = json.loads(json.dumps(content_of(RUN)))
    VALIDATOR.validate(content)
    assert not VALIDATOR.is_valid({**content, key: value})

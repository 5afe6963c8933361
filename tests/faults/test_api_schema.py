"""The responses of the agent's API to generated requests conform to the API's description."""

import json
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from exporters.api.openapi import description
from tests.faults.api import HOST, Api, running

DESCRIPTION = description(version("casstat"))
schema = schemathesis.openapi.from_dict(DESCRIPTION)


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with running(tmp_path_factory.mktemp("api")) as started:
        yield started
        assert started.is_sound()


def test_the_served_description_is_the_tested_one(api: Api) -> None:
    served = json.loads(api.get("/api/v1/openapi.json").partition(b"\r\n\r\n")[2])
    assert served == DESCRIPTION


@schema.parametrize()
@settings(max_examples=20, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
def test_responses_conform_to_the_description(api: Api, case: Any) -> None:
    # Without this header, the response cannot be an event stream, which would never end.
    case.headers.pop("Accept", None)
    answer = case.call(base_url=f"http://{HOST}:{api.port}", timeout=60)
    # A POST request that fits the schema may be rejected, because only the description's prose says that names must be
    # printable. An invalid request that is also too large is refused because of its size.
    excluded = [positive_data_acceptance] if case.method == "POST" else []
    excluded += [negative_data_rejection] if answer.status_code in (413, 431) else []
    case.validate_response(answer, excluded_checks=excluded)

"""The soak takes minutes: as many as CASSTAT_SOAK_MIN says, ten if it says nothing."""

import os
from pathlib import Path

import pytest

from tests.faults.conftest import fake, plain_environment

__all__ = ["fake", "plain_environment"]

MINUTES = int(os.environ.get("CASSTAT_SOAK_MIN", "10"))


@pytest.fixture
def minutes() -> int:
    return MINUTES


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.timeout(60 * MINUTES + 300))

"""The totals in a checkpoint: restored exactly; malformed ones are rejected."""

import json

import pytest

from exporters.metrics_page.self_metrics import SourceHealth, TickHealth
from tests.every import every

HEALTH = TickHealth(7, 1, 0.25, 1.5, sources={"node": SourceHealth(True, 2.5, 0.5, 3)})
CONTENT = HEALTH.content()


def test_the_totals_are_restored() -> None:
    assert TickHealth.of_content(json.loads(json.dumps(CONTENT))) == HEALTH


@every(
    "content",
    [
        [],
        {},
        {**CONTENT, "ticks": "7"},
        {**CONTENT, "late": 5},
        {**CONTENT, "late": [1]},
        {**CONTENT, "sources": 5},
        {**CONTENT, "sources": [1]},
        {**CONTENT, "sources": {"node": 5}},
        {**CONTENT, "events": {"run": None}},
    ],
)
def test_malformed_totals_are_rejected(content: object) -> None:
    with pytest.raises((TypeError, ValueError, KeyError)):
        TickHealth.of_content(content)  # type: ignore[arg-type]

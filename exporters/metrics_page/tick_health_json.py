"""The totals over an agent's ticks as JSON values, for checkpoints."""

from collections.abc import Mapping
from typing import Any

from exporters.metrics_page.agent_health import SourceHealth, TickHealth


def tick_health_json(health: TickHealth) -> dict[str, Any]:
    sources = {name: [source.up, source.wall_s, source.cpu_s, source.errors] for name, source in health.sources.items()}
    return {
        "ticks": health.ticks,
        "missed": health.missed,
        "late_s": health.late_s,
        "late_sum_s": health.late_sum_s,
        "late": list(health.late),
        "sources": sources,
        "events": dict(health.events),
    }


def tick_health_from_json(content: Mapping[str, Any]) -> TickHealth:
    """Return the totals. Raises TypeError, ValueError or KeyError if they are malformed."""
    late, events = tuple(content["late"]), dict(content["events"])
    sources = {name: SourceHealth(*source) for name, source in dict(content["sources"]).items()}
    health = TickHealth(
        content["ticks"], content["missed"], content["late_s"], content["late_sum_s"], late, sources, events
    )
    figures = [health.ticks, health.missed, health.late_s, health.late_sum_s, *late, *events.values()]
    figures += [figure for source in sources.values() for figure in (source.wall_s, source.cpu_s, source.errors)]
    if len(late) != len(TickHealth().late) or not all(isinstance(figure, int | float) for figure in figures):
        raise ValueError("invalid totals")
    return health

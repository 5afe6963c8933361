"""The clients' panels: which kinds of latency they show, and the notes beside them."""

from collections.abc import Collection, Iterable

from exporters.charts.gnuplot_page import Box, Page
from exporters.charts.plot_text import SMALL_PT
from exporters.results.summary.client_values import LATENCY_KINDS

_BESIDE_PX, _LINE_PX = 12, 14
_NOTES = {"response": ("response time",), "service": ("service time:", "coordinated omission", "possible")}


def shown_kinds(runs: Iterable[Collection[str]]) -> list[str]:
    """Return the kinds of latency that have a panel; each run has the kinds that are known.

    Service times are shown only if a run has no response times; the panel then has the service times of all runs.
    """
    known = [kinds for kinds in runs if kinds]
    response, service = LATENCY_KINDS
    needs = {
        response: any(response in kinds for kinds in known),
        service: any(response not in kinds for kinds in known),
    }
    return [kind for kind in LATENCY_KINDS if needs[kind]]


def kind_note(page: Page, box: Box, kind: str) -> list[str]:
    """Return the commands that write to the right of a panel which kind of latency it shows."""
    return [
        page.label(
            text, box.right + _BESIDE_PX, box.top + _LINE_PX * (index + 0.5), f"left font ',{SMALL_PT}' tc rgb ink"
        )
        for index, text in enumerate(_NOTES[kind])
    ]

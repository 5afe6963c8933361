"""Leaves out what takes long in casstat's programs, for tests that look at something else."""

from collections.abc import Callable, Generator, Iterator

import pytest

from cli.runs.isolated_read import read_limited


def omit_drawing(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("exporters.charts.gnuplot_page.begin_drawing", lambda *_, **__: list)


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """The scripts of plots are written, but gnuplot does not run."""
    omit_drawing(monkeypatch)


@pytest.fixture
def unisolated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Client results are read in the test's process."""
    monkeypatch.setattr("cli.runs.client_results.read_isolated", read_limited)


@pytest.fixture
def only_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """A completed run has a summary and a report, but no tables and no plots."""

    def nothing(*_: object) -> Iterator[None]:
        yield

    def nothing_drawn(*_: object) -> Generator[None, None, Callable[[], None]]:
        yield
        return lambda: None

    monkeypatch.setattr("cli.runs.finish.tables", nothing)
    monkeypatch.setattr("cli.runs.finish.plots", nothing_drawn)

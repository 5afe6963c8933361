"""The application that serves the series of load generators while `casstat record` runs: only `/metrics`."""

import gzip

from starlette.applications import Starlette

from exporters.api.app import application, plain
from exporters.api.metrics_endpoint import exposition
from exporters.metrics_page.load_series import LoadSeries
from exporters.metrics_page.page import LEVEL


class _Page:
    """The exposition of `series`, compressed on request."""

    def __init__(self, series: LoadSeries) -> None:
        self._series = series

    def metrics(self, *, openmetrics: bool, compressed: bool) -> bytes:
        page = self._series.metrics(openmetrics=openmetrics)
        return gzip.compress(page, LEVEL) if compressed else page


def load_app(series: LoadSeries) -> Starlette:
    """Return the application that serves `series`."""
    page = _Page(series)
    return application({"/metrics": plain(lambda request: exposition(page, request))})

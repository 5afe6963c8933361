"""Serves the client results of a run as metrics on `/metrics`, while the run's command writes them."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from cli.errors import CasstatError, note
from cli.run_folder import LOG_FILE
from cli.runs.client_results import expanded
from collector.load_results.client_format import FormatChoice
from collector.load_results.client_result import redacted_errors
from collector.load_results.growing_results import GrowingResults
from collector.redaction.redactor import Redactor
from exporters.api.app import load_app
from exporters.api.server import Server
from exporters.api.sockets import ListenError, with_default_host
from exporters.metrics_page.load_series import LoadSeries

INTERVAL_S = 1.0


class LoadServer:
    """Serves the series from the beginning to the end of the `with` block, in threads."""

    def __init__(self, listen: str, clients: Sequence[str], folder: Path, cluster: str, redactor: Redactor) -> None:
        """Serve the results in the files that `--client` names and in the command's log in `folder`, at [HOST:]PORT.

        The labels are without the secrets that `redactor` replaces. Raises CasstatError.
        """
        self._clients, self._log_file = tuple(clients), folder / LOG_FILE
        self._redactor = redactor
        self._series = LoadSeries(cluster)
        try:
            self._server = Server(load_app(self._series), with_default_host(listen), None, note)
        except ListenError as error:
            raise CasstatError(f"--serve {error}") from None
        self._results = GrowingResults(self._paths, lambda text: note(redactor.text(text)), self._log_file)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="client results")

    def __enter__(self) -> "LoadServer":
        note(f"serving the client's metrics on {self._server.url}/metrics")
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()
        self._results.close()
        self._server.stop()

    def _follow(self) -> None:
        while not self._stopped.wait(INTERVAL_S):
            for path, addition in self._results.step():
                client = path.name if path == self._log_file else self._redactor.text(str(path))
                if addition.restarts:
                    self._series.begin(client)
                if addition.malformed:
                    self._series.skip(client, addition.malformed)
                for operation in addition.operations:
                    if operation.total is not None:
                        total = redacted_errors(operation.total, self._redactor.text)
                        self._series.add(client, self._redactor.text(operation.name), total)

    def _paths(self) -> Iterator[tuple[Path, FormatChoice]]:
        for text in self._clients:
            # A file that does not exist yet may appear later.
            with suppress(CasstatError):
                yield from expanded(text)

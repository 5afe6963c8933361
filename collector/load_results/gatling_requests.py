"""The requests in Gatling's logs, as text and in binary form.

A request belongs to the second in which it ended. Its response time begins when Gatling sends it, whatever rate users
are injected at, so it is the service time. Each redirect is a request, as in Gatling's own report; groups are not,
because they contain requests. Requests are named as Gatling prints them: "group / name".
"""

import re
from collections.abc import Sequence

from collector.load_results.client_format import ClientFormatError
from collector.load_results.client_result import ClientResult
from collector.load_results.operation_times import OperationTimes
from collector.load_results.parsing.field_values import checked_time_s, latency_ns
from collector.printable import count_text

MS_NS = 1_000_000
MS_PER_S = 1000
_STATUS = re.compile(r"status\..*found (\d{3})")


class GatlingRequests:
    """The requests of a log. `errors` is the number of errors that Gatling logs apart from requests."""

    def __init__(self) -> None:
        self.errors = 0
        self._times = OperationTimes()

    def add(self, groups: Sequence[str], name: str, begin_ms: int, end_ms: int, message: str | None) -> None:
        """Add a request; `message` states why it failed, or is None if it succeeded. Raises ValueError."""
        duration_ns = latency_ns(end_ms - begin_ms, MS_NS)
        end_s = checked_time_s(end_ms / MS_PER_S)
        label = " / ".join([*groups, name])
        if message is None:
            self._times.add(label, end_s, duration_ns)
            return
        status = _STATUS.match(message)
        self._times.add_error(label, end_s, f"status {status[1]}" if status else message.strip())

    def result(self, format_name: str, tool: str, source: str, runs: int, notes: Sequence[str]) -> ClientResult:
        """Return the result; `runs` is the number of runs in the file. Raises ClientFormatError."""
        operations = self._times.operations()
        if not operations:
            raise ClientFormatError("no requests")
        further = {
            f"the file has {count_text(runs, 'run')} of Gatling": runs > 1,
            f"{count_text(self.errors, 'error')} outside of requests not counted": self.errors,
        }
        all_notes = (*notes, *(note for note, applies in further.items() if applies), *self._times.notes("request"))
        return ClientResult(format_name, tool, source, operations, notes=all_notes)

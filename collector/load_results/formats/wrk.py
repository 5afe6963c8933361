"""What wrk and wrk2 print; latencies require `--latency`.

Both print only totals. The number of requests is the number of responses, including those with an error status; in wrk,
it also includes responses that came after the timeout, whose latency wrk does not record. wrk measures from when a
request was sent (service time), but adds estimated latencies for requests that a slow one delayed, so its percentiles
can be far higher than those of the requests that were actually sent. wrk2 measures from when a request should have been
sent (response time), and with `--u_latency` also from when it was sent.
"""

import re
from collections import defaultdict

from collector.load_results.client_format import ClientFormatError, Format, SourceFile
from collector.load_results.client_result import ClientInterval, ClientResult, failed_note
from collector.load_results.command_output import last_run, only_total

UNITS_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_TIME = r"(\d{1,12}\.\d\d)(us|ms|s|m|h)"
_RUN = re.compile(r"^Running \S+ test @ ", re.MULTILINE)
_STATISTICS = re.compile(r"\s*Thread Stats\b")
_DISTRIBUTION = re.compile(r"\s*Latency Distribution(?P<kind>.*)")
_SOCKET_ERRORS = ("connect", "read", "write", "timeout")
# Each kind of line has a pattern for its beginning, and one for the whole line.
_LINES = {
    kind: (re.compile(begin), re.compile(whole))
    for kind, begin, whole in (
        ("percentile", r"\s*[\d.]+%", r"\s*(\d{1,3}(?:\.\d+)?)%\s+" + _TIME),
        ("spectrum", r"\s*\d+\.\d+\s+\d+\.\d+\s", r"\s*(\d{1,12}\.\d+)\s+([01]\.\d+)\s+\d+\s+(?:[\d.]+|inf)"),
        ("requests", r"\s*\d+ requests\b", r"\s*(\d{1,18}) requests in " + _TIME + r", \S+B read"),
        (
            "socket errors",
            r"\s*Socket errors",
            r"\s*Socket errors: " + ", ".join(rf"{kind} (?P<{kind}>\d{{1,18}})" for kind in _SOCKET_ERRORS),
        ),
        ("status errors", r"\s*Non-2xx or 3xx", r"\s*Non-2xx or 3xx responses: (?P<status>\d{1,18})"),
        ("rate", r"\s*Requests/sec", r"\s*Requests/sec:\s+(\d{1,15}\.\d\d)"),
    )
}


def read(file: SourceFile) -> ClientResult:
    run, notes = last_run(file.path, "wrk", _RUN.match, _Run)
    return only_total(file, "wrk2" if run.is_wrk2 else "wrk", run.total(), [*run.notes(), *notes])


FORMATS = (Format("wrk", _RUN.search, read, follows_output=True),)


class _Run:
    def __init__(self) -> None:
        self._requests: int | None = None
        self.is_wrk2 = False
        self._has_begun = False
        self._stated_length_s = 0.0
        self._precision_s = 0.0
        self._rate: float | None = None
        self._errors = dict.fromkeys((*_SOCKET_ERRORS, "status"), 0)
        self._kind = ""
        self._stated_s: defaultdict[str, dict[float, float]] = defaultdict(dict)

    def add(self, text: str) -> None:
        """Add a line; those of other programs and of wrk's scripts are ignored. Raises ValueError if it is damaged.

        wrk prints its results in one piece, from the statistics of its threads to the rates.
        """
        self._has_begun |= bool(_STATISTICS.match(text) or _LINES["requests"][1].fullmatch(text))
        if not self._has_begun or self._rate is not None:
            self.is_wrk2 |= text.lstrip().startswith("Thread calibration")
            return
        if match := _DISTRIBUTION.fullmatch(text):
            self._begin_distribution(match["kind"])
            return
        for kind, (begin, whole) in _LINES.items():
            if begin.match(text):
                match = whole.fullmatch(text)
                if match is None:
                    raise ValueError("not a line of wrk's output")
                self._take(kind, match)
                return

    def _begin_distribution(self, kind: str) -> None:
        self.is_wrk2 |= "HdrHistogram" in kind
        self._kind = "response" if self.is_wrk2 and "Uncorrected" not in kind else "service"

    def _take(self, kind: str, match: re.Match[str]) -> None:
        if kind == "requests":
            unit_s = UNITS_S[match[3]]
            self._requests = int(match[1])
            self._stated_length_s, self._precision_s = float(match[2]) * unit_s, 0.01 * unit_s
        elif kind == "rate":
            self._rate = float(match[1])
        elif kind in ("socket errors", "status errors"):
            self._errors |= {name: int(count) for name, count in match.groupdict().items()}
        elif self._kind and kind == "percentile":
            self._stated_s[self._kind][float(match[1])] = float(match[2]) * UNITS_S[match[3]]
        elif self._kind:
            # The spectrum is finer than the percentages above it.
            self._stated_s[self._kind][round(float(match[2]) * 100, 6)] = float(match[1]) / 1000

    @property
    def _failed_responses(self) -> tuple[int, int]:
        """The numbers of responses with an error status and of those after the timeout, which may be the same ones.

        wrk2 does not count timeouts by request, so they are 0.
        """
        return self._errors["status"], 0 if self.is_wrk2 else self._errors["timeout"]

    def total(self) -> ClientInterval:
        """Return the total, whose times count from the beginning of the run.

        Raises ClientFormatError if the run is incomplete, or its figures contradict each other.
        """
        requests, rate, length_s = self._requests, self._rate, self._stated_length_s
        if requests is None or rate is None:
            raise ClientFormatError("the totals of the last run are missing (hint: wrk prints them when it ends)")
        if abs(rate * length_s - requests) > rate * self._precision_s + 0.01 * length_s + 1:
            raise ClientFormatError("the number of requests contradicts the requests per second")
        status, timeout = self._failed_responses
        if max(status, timeout) > requests:
            raise ClientFormatError("more failed responses than requests")
        # As many as possible are counted as failed; each only once.
        failed = min(status + timeout, requests)
        errors = self._errors | ({"timeout": failed - status} if timeout else {})
        service_s, response_s = (self._stated_s.get(kind, {}) for kind in ("service", "response"))
        if requests and rate:
            # The rate has more digits than the stated duration.
            length_s = requests / rate
        return ClientInterval.stated(length_s, requests - failed, errors, service_s, response_s)

    def notes(self) -> list[str]:
        notes = []
        if not self._stated_s:
            notes.append("there are no percentiles (hint: run wrk with --latency)")
        elif not self.is_wrk2:
            notes.append("wrk adds estimated latencies for requests that were delayed by slow ones")
        else:
            notes.append("wrk2's latencies do not include its calibration, about the first ten seconds")
        status, timeout = self._failed_responses
        fewest, most = max(status, timeout), min(status + timeout, self._requests or 0)
        if fewest < most:
            notes.append(
                f"{fewest:,} to {most:,} requests failed: late responses with an error status are in two of wrk's "
                f"counters; {most:,} are counted"
            )
        if self._stated_s:
            notes += failed_note(self._errors["status"], "request")
        if self.is_wrk2 and self._errors["timeout"]:
            notes.append(
                "wrk2 counts a slow request as a timeout at each check, so one request may be several timeouts"
            )
        return notes

"""What cassandra-stress prints (not its HdrHistogram file or HTML).

Its rows have no time of day: `time` is the number of seconds since the run began, and an interval without operations
has no row. A command can perform several runs, one for each number of threads; the warm-up prints no rows. Counts and
latencies include failed operations. Latencies are response times only with `-rate fixed=`. cassandra-stress does not
print this option, so it is looked for in the command.
"""

import re

from collector.load_results.client_format import ClientFormatError, CommandTimes, Format, ResultClock, SourceFile
from collector.load_results.client_result import ClientInterval, ClientResult
from collector.load_results.command_output import OutputLine, output_lines
from collector.load_results.parsing import label_of
from collector.load_results.stress_run import Row, StressRun
from collector.printable import count_text

NAME = "cassandra-stress"
# The time from the last row until the process has ended. Closing the driver's connections took 2.04 to 2.06 s in three
# runs of a program with the driver of cassandra-stress 5.0; cassandra-stress itself was not measured.
SHUTDOWN_S = 2.1
_HEADER = re.compile(r"^type,?\s+total ops,", re.MULTILINE)
_RATE, _MS, _COUNT = r"\s*(\d{1,15}|NaN|Infinity)", r"\s*(\d{1,12}[.,]\d|NaN|Infinity)", r"\s*(\d{1,18})"
_TIME, _DEVIATION, _GC = r"\s*(\d{1,9}[.,]\d)", r"\s*(?:\d+[.,]\d{5}|NaN|Infinity)", r"\s*-?(?:\d+|NaN|Infinity)"
# The number of decimal places is fixed, so that decimal commas are not mistaken for separators.
_ROW = re.compile(",".join([r"([^,]+)", _COUNT, *[_RATE] * 3, *[_MS] * 6, _TIME, _DEVIATION, _COUNT, *[_GC] * 5]))
_BEGIN_OF_ROW = re.compile(r"[^,]{1,200},\s*\d+,\s*(?:\d|NaN|Infinity)")
_RUNNING = re.compile(r"Running (?:\[?(?P<name>[^\[\],]+)\]?|.*) with (?P<threads>\d{1,9}) threads?\b.*")
_FIXED_RATE = re.compile(r"\bfixed=\d+/s")
_OUTPUT_FREQUENCY = re.compile(r"\s*Output frequency: (\w+)")
_LIMITED_RATE = re.compile(r"\s*OpsPer Sec: [1-9]\d*")
PERCENTAGES = (50.0, 95.0, 99.0, 99.9, 100.0)


def read(file: SourceFile) -> ClientResult:
    log = _Log(file.times)
    for line in output_lines(file.path):
        log.add(line)
    run = log.run
    if run:
        run.end()
    if run is None or not (run.totals or run.is_sparse):
        raise ClientFormatError("the last run has no rows")
    length_s = run.exact_length_s
    begin_s = max(file.times.end_s - (SHUTDOWN_S if log.has_ended else 0.0) - length_s, file.times.begin_s)
    operations = run.operations()
    if log.is_fixed:
        operations = [operation.changed(ClientInterval.as_response) for operation in operations]
    return file.result(NAME, operations, log.notes(), run.stated, estimated_clock=True).shifted(begin_s)


FORMATS = (Format(NAME, _HEADER.search, read, follows_output=True, clock=ResultClock.STEADY),)


class _Log:
    """The last run of a log, and the number of earlier runs and of their operations."""

    def __init__(self, times: CommandTimes) -> None:
        self.run: StressRun | None = None
        self.has_ended = False
        self._add_command(" ".join(times.words))
        # Whether the next header begins a run; if not, it is repeated (`-reporting header-frequency=`).
        self._begins_run = True
        self._has_header = False
        self._is_limited = False
        self._earlier_runs = self._earlier_operations = 0
        self._running: re.Match[str] | None = None
        self._has_failed = self._has_warm_up = self._is_cut = self._has_results = False

    def add(self, line: OutputLine) -> None:
        """Add a line. Raises ClientFormatError if it is a damaged row."""
        self._is_cut = not line.is_whole and not re.fullmatch(r"END|FAILURE", line.text)
        if _HEADER.match(line.text):
            if self._begins_run:
                self._begin_run()
            self._has_header = True
        elif line.text == "Results:":
            self._has_results = self._begins_run = True
        elif self.run and self._has_results and line.is_whole:
            self.run.add_result(line.text)
        elif self.run and not self._has_results and _BEGIN_OF_ROW.match(line.text):
            self._add_row(self.run, line)
        self._add_context(line.text)

    def _begin_run(self) -> None:
        if self.run:
            self._earlier_runs += 1
            self._earlier_operations += self.run.completed
        name = (self._running["name"] or "") if self._running else ""
        self.run = StressRun(_clean(name), is_sparse=self._is_sparse)
        self._begins_run = self._has_results = self.has_ended = self._has_failed = False

    def _add_row(self, run: StressRun, line: OutputLine) -> None:
        match = _ROW.fullmatch(line.text)
        if match is None:
            if line.is_whole:
                raise ClientFormatError(f"line {line.number}: malformed row")
            return
        name, count, rate, _, _, _, *latencies, time_s, errors = match.groups()
        name = _clean(name)
        stated_s = {
            percentage: _decimal(text) / 1000
            for percentage, text in zip(PERCENTAGES, latencies, strict=True)
            if text[0].isdigit()
        }
        rate_per_s = int(rate) if rate.isdigit() else None
        row = Row(line.number, _decimal(time_s), int(count), rate_per_s, int(errors), stated_s)
        if self._has_header and not run.continues_with(name, row):
            self._begin_run()
        self._has_header = False
        (self.run or run).add_row(name, row)

    def _add_context(self, text: str) -> None:
        """Process a line that is neither a row nor a result, but may contain information about the runs."""
        if text in ("END", "FAILURE"):
            self.has_ended, self._has_failed = True, text == "FAILURE"
        elif text.startswith("Warming up "):
            self._has_warm_up = self._begins_run = True
        elif match := _RUNNING.fullmatch(text):
            self._running, self._begins_run = match, True
        elif "Stress Settings" in text:
            self._is_limited, self._begins_run = False, True
        elif _LIMITED_RATE.fullmatch(text):
            self._is_limited = True
        elif match := _OUTPUT_FREQUENCY.fullmatch(text):
            self._is_sparse = _is_several(match[1])
        elif "cassandra-stress " in text:
            self._add_command(text)

    def _add_command(self, text: str) -> None:
        """Process the options of the last command in a text."""
        command = text.rpartition("cassandra-stress")[2]
        self.is_fixed = bool(_FIXED_RATE.search(command))
        frequency = re.search(r"\boutput-frequency=(\w+)", command)
        # Whether rows of every Nth interval only are printed.
        self._is_sparse = bool(frequency and _is_several(frequency[1]))

    def notes(self) -> list[str]:
        notes = self.run.notes() if self.run else []
        if self._earlier_runs:
            operations = count_text(self._earlier_operations, "operation")
            threads = f", with {count_text(int(self._running['threads']), 'thread')}" if self._running else ""
            earlier = count_text(self._earlier_runs, "earlier run")
            notes.append(f"{earlier} with {operations} ignored; only the last run{threads} is imported")
        if self._has_warm_up:
            notes.append("warm-up operations are not counted, because cassandra-stress prints no rows for them")
        if self._is_limited and not self.is_fixed:
            notes.append("the rate was limited; if the limit was set with fixed=, the latencies are response times")
        if self._has_failed:
            notes.append("cassandra-stress ended with FAILURE")
        if self._is_cut:
            notes.append("the output ends in the middle of a line; if that line is a row or a result, it is ignored")
        return notes


def _is_several(duration: str) -> bool:
    """Return whether a duration such as "5s" is longer than a second."""
    match = re.fullmatch(r"(\d{1,9})([smhd])", duration)
    return bool(match and int(match[1]) > (match[2] == "s"))


def _clean(name: str) -> str:
    return label_of(name).lower()


def _decimal(text: str) -> float:
    return float(text.replace(",", "."))

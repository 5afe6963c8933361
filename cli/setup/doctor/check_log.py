"""Checks the node's log: whether it is readable, matches the pattern, and contains flush messages."""

import html
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path

from cli.setup.doctor.examined_node import ExaminedNode, Finding, alternatives, ok, problem, warning
from collector.file_access import NotRegularError
from collector.model.snapshot import SourceError
from collector.node.host.kernel_files import read_text
from collector.node.log.logback import DEFAULT_PATTERN, LogPattern, parse, tail_lines, unmatched

SUBJECT = "log"
PURPOSE = "it shows flushes, compactions, repairs, GC pauses and node up/down events"
USUAL = Path("/var/log/cassandra/system.log")
# Only debug.log contains DEBUG messages.
SYSTEM, DEBUG = "system.log", "debug.log"
LOGBACK = "logback.xml"
# The limits keep the time for a file that another user has written short.
_PATTERN = re.compile(r"<pattern>([^<]{0,1000})</pattern>")
MAX_PATTERNS = 100
_FOLDER = re.compile(r"-Dcassandra\.logdir=(/.*)")


def examine(case: ExaminedNode) -> list[Finding]:
    """Return the findings about the log given with --log, or a suggestion if none is given."""
    logs = list(candidates(case))
    path = case.settings.log
    if path is None:
        best = next((log for log in logs if _has_flushes(case, log)), next(iter(logs), None))
        suggestion = f" ({case.advice.line(log=str(best))})" if best else ""
        return [ok(SUBJECT, f"not checked: --log is not used; {PURPOSE}{suggestion}")]
    try:
        tail = tail_lines(path)
    except NotRegularError as error:
        return [problem(SUBJECT, f"{path}: {error}", "no events", case.advice.line(log="FILE"))]
    except OSError as error:
        return [_unreadable(case, path, error, logs)]
    try:
        pattern = parse(case.settings.log_pattern or DEFAULT_PATTERN)
    except ValueError as error:
        return [problem(SUBJECT, str(error), "no events", case.advice.line(log_pattern=DEFAULT_PATTERN))]
    return [_pattern_finding(case, path, pattern, tail), *_level_findings(case, path)]


def _unreadable(case: ExaminedNode, path: Path, error: OSError, logs: Iterable[Path]) -> Finding:
    summary = f"{path}: {error.strerror}"
    if isinstance(error, PermissionError):
        owner = case.owner(case.chosen.pid) if case.chosen else None
        user = owner.name if owner and owner.uid != case.uid else "root"
        return problem(SUBJECT, summary, "no events", case.advice.as_user(user, case.advice.line()))
    fixes = [case.advice.line(log=str(log)) for log in logs] or [case.advice.line(log="FILE")]
    return problem(SUBJECT, summary, "no events", *alternatives(fixes))


def _pattern_finding(case: ExaminedNode, path: Path, pattern: LogPattern, tail: list[str]) -> Finding:
    count = unmatched(pattern, tail)
    if not count:
        return ok(SUBJECT, f"{path} is readable")
    no_match = f"none of its last {count} lines matches" if count > 1 else "its last line does not match"
    summary = f"{path}: {no_match} the pattern '{pattern.text}'"
    matching = next((other for other in _configured_patterns(case) if any(map(other.line, tail))), None)
    if matching is not None:
        return problem(SUBJECT, summary, "no events", case.advice.line(log_pattern=matching.text))
    impact = f"no events; <pattern> in {case.configuration(LOGBACK)} contains the log's pattern"
    return problem(SUBJECT, summary, impact, case.advice.line(log_pattern="PATTERN"))


def _configured_patterns(case: ExaminedNode) -> Iterator[LogPattern]:
    """Yield the supported patterns in the node's logback configuration."""
    try:
        text = read_text(Path(case.configuration(LOGBACK)))
    except SourceError:
        return
    for match in islice(_PATTERN.finditer(text), MAX_PATTERNS):
        with suppress(ValueError):
            yield parse(html.unescape(match[1].strip()))


def _level_findings(case: ExaminedNode, path: Path) -> list[Finding]:
    """Return a warning if Cassandra logs flushes to a different file."""
    if _has_flushes(case, path):
        return []
    summary = f"Cassandra {case.release} does not log flushes or compactions to {path.name}"
    return [warning(SUBJECT, summary, "no such events", case.advice.line(log=str(path.with_name(DEBUG))))]


def _has_flushes(case: ExaminedNode, path: Path) -> bool:
    """Return whether Cassandra logs flushes to this file.

    Cassandra 3 logs them at DEBUG level, so if there is a debug.log, they are in that file and not in system.log.
    """
    return not (case.release.startswith("3.") and path.name == SYSTEM and path.with_name(DEBUG).exists())


def candidates(case: ExaminedNode) -> Iterable[Path]:
    """Return the existing logs: those that the node has open, and those in its log directory and the default one."""
    paths = list(_open_logs(case))
    for word in case.command(case.chosen.pid) if case.chosen else ():
        if match := _FOLDER.fullmatch(word):
            paths.append(Path(match[1], SYSTEM))
    paths.append(USUAL)
    return dict.fromkeys(path for path in paths if path.name in (SYSTEM, DEBUG) and _is_file(path))


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def _open_logs(case: ExaminedNode) -> list[Path]:
    if case.chosen is None:
        return []
    try:
        links = [link.readlink() for link in (case.root / "proc" / str(case.chosen.pid) / "fd").iterdir()]
    except OSError:
        return []
    return sorted({link for link in links if link.suffix == ".log"}, reverse=True)

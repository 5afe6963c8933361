"""The node's log: whether it can be read, is of the form that is known, and tells of flushes."""

import html
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from cli.doctor.examined_node import ExaminedNode
from cli.doctor.finding import Finding, alternatives, ok, problem, warning
from collector.host.kernel_files import read_text
from collector.log.logback import DEFAULT_PATTERN, LogPattern, parse
from collector.model.snapshot import SourceError

SUBJECT = "log"
WHAT_FOR = "-d adds flushes, compactions, repairs, GC and nodes up and down"
TAIL_BYTES = 1 << 16
USUAL = Path("/var/log/cassandra/system.log")
# What is told at DEBUG stands in one of the two files alone.
SYSTEM, DEBUG = "system.log", "debug.log"
LOGBACK = "logback.xml"
_PATTERN = re.compile(r"<pattern>(.*?)</pattern>", re.DOTALL)
_FOLDER = re.compile(r"-Dcassandra\.logdir=(/.*)")


def examine(case: ExaminedNode) -> list[Finding]:
    """Return what there is to say of the log that was given, or where one may be."""
    there = list(candidates(case))
    path = case.settings.log
    if path is None:
        best = next((path for path in there if _is_best(case, path)), next(iter(there), None))
        return [ok(SUBJECT, f"not followed: {WHAT_FOR}{f' ({case.advice.line(log=str(best))})' if best else ''}")]
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - TAIL_BYTES))
            tail = file.read(TAIL_BYTES).decode(errors="replace").splitlines()[1 if size > TAIL_BYTES else 0 :]
    except OSError as error:
        return [_unreadable(case, path, error, there)]
    try:
        pattern = parse(case.settings.log_pattern or DEFAULT_PATTERN)
    except ValueError as error:
        return [problem(SUBJECT, str(error), "no event is found", case.advice.line(log_pattern=DEFAULT_PATTERN))]
    return [_form(case, path, pattern, tail), *_level(case, path)]


def _unreadable(case: ExaminedNode, path: Path, error: OSError, there: Iterable[Path]) -> Finding:
    what = f"{path}: {error.strerror}"
    if isinstance(error, PermissionError):
        owner = case.owner(case.chosen.pid) if case.chosen else None
        user = owner.name if owner and owner.uid != case.uid else "root"
        return problem(SUBJECT, what, "no events", case.advice.as_user(user, case.advice.line()))
    others = [case.advice.line(log=str(other)) for other in there] or [case.advice.line(log="FILE")]
    return problem(SUBJECT, what, "no events", *alternatives(others))


def _form(case: ExaminedNode, path: Path, pattern: LogPattern, tail: list[str]) -> Finding:
    lines = [line for line in tail if line]
    if not lines or any(map(pattern.line, lines)):
        return ok(SUBJECT, f"{path} can be read")
    what = f"{path}: none of its last {len(lines)} lines is of the form '{pattern.text}'"
    fitting = next((other for other in _configured(case) if any(map(other.line, lines))), None)
    if fitting is not None:
        return problem(SUBJECT, what, "no events", case.advice.line(log_pattern=fitting.text))
    why = f"no events; what is between <pattern> and </pattern> in {case.configuration(LOGBACK)} says how it writes"
    return problem(SUBJECT, what, why, case.advice.line(log_pattern="PATTERN"))


def _configured(case: ExaminedNode) -> Iterator[LogPattern]:
    """Yield the patterns of the node's own configuration that are understood."""
    try:
        text = read_text(Path(case.configuration(LOGBACK)))
    except SourceError:
        return
    for found in _PATTERN.findall(text):
        try:
            yield parse(html.unescape(found.strip()))
        except ValueError:
            continue


def _level(case: ExaminedNode, path: Path) -> list[Finding]:
    """Return that the log keeps flushes to itself, if so."""
    if _is_best(case, path):
        return []
    what = f"{path.name} of Cassandra {case.release} does not tell of flushes and compactions"
    return [warning(SUBJECT, what, "no events of these", case.advice.line(log=str(path.with_name(DEBUG))))]


def _is_best(case: ExaminedNode, path: Path) -> bool:
    """Return whether flushes stand in it: Cassandra 3 tells of them at DEBUG alone."""
    return not (case.release.startswith("3.") and path.name == SYSTEM and path.with_name(DEBUG).exists())


def candidates(case: ExaminedNode) -> Iterable[Path]:
    """Yield the logs that the node writes, so far as they can be found."""
    found = list(_open_logs(case))
    for word in case.command(case.chosen.pid) if case.chosen else ():
        if match := _FOLDER.fullmatch(word):
            found.append(Path(match[1], SYSTEM))
    found.append(USUAL)
    return dict.fromkeys(path for path in found if path.name in (SYSTEM, DEBUG) and _is_file(path))


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def _open_logs(case: ExaminedNode) -> list[Path]:
    if case.chosen is None:
        return []
    try:
        links = [each.readlink() for each in (case.root / "proc" / str(case.chosen.pid) / "fd").iterdir()]
    except OSError:
        return []
    return sorted({link for link in links if link.suffix == ".log"}, reverse=True)

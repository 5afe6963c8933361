"""Parses log lines according to the logback pattern that they were written with.

The pieces of a pattern (conversion words, text, groups) become regular expressions. A log whose lines do not match its
pattern is recognised, since it would otherwise have no events without a reason.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from collector.file_access import GrowingFile, NotRegularError
from collector.node.log.java_dates import DateFormat, date_format, zone_of
from collector.printable import one_line

DATE_FORMATS = {"ISO8601": "yyyy-MM-dd HH:mm:ss,SSS", "STRICT": "yyyy-MM-dd'T'HH:mm:ss,SSS"}
# These limits bound the cost of matching, because log lines are untrusted.
MAX_WORD_CHARS, MAX_WIDTH = 1000, 200
THREAD, DATE, MESSAGE, NEWLINE = "thread", "date", "message", "newline"
_LEVEL, _FREE, _NUMBER, _NOTHING, _TEXT, _BLANKS = "level", "free", "number", "nothing", "text", "blanks"
_WORDS = {
    **dict.fromkeys(("level", "le", "p"), _LEVEL),
    **dict.fromkeys(("date", "d"), DATE),
    **dict.fromkeys(("message", "msg", "m"), MESSAGE),
    **dict.fromkeys(("thread", "t"), THREAD),
    **dict.fromkeys(("logger", "lo", "c", "class", "C", "file", "F", "method", "M", "mdc", "X", "marker"), _FREE),
    **dict.fromkeys(("contextName", "cn", "property", "kvp", "maskedKvp"), _FREE),
    **dict.fromkeys(("line", "L", "relative", "r", "micros", "ms", "lsn", "sequenceNumber", "sn"), _NUMBER),
    # These words add nothing to the line that contains the message, because stack traces start on a new line.
    **dict.fromkeys(("ex", "exception", "throwable", "xEx", "xException", "xThrowable"), _NOTHING),
    **dict.fromkeys(("rEx", "rootException", "nopex", "nopexception", "wEx", "wex"), _NOTHING),
    "n": NEWLINE,
}
_ESCAPED = {**{letter: letter for letter in "\\%()"}, "_": "", "t": "\t", "r": "\r", "n": "\n"}
_TOKEN = re.compile(
    r"\\(?P<escaped>.?)"
    r"|%(?P<modifier>[-.\d]*)(?:(?P<group>\()|(?P<word>[^\W\d]\w*)(?P<nested>\()?"
    r"(?:\{(?P<options>(?:'[^']*'|\"[^\"]*\"|[^}'\"])*)\})?)"
    r"|(?P<text>.)",
    re.DOTALL,
)
_OPTION = re.compile(r"\s*(?:'([^']*)'\s*(?=,|$)|\"([^\"]*)\"\s*(?=,|$)|([^,]*))(?:,|$)")
_MODIFIER = re.compile(r"(?P<left>-?)(?P<least>\d*)(?:\.(?P<most>-?\d+))?")
DEFAULT_PATTERN = "%-5level [%thread] %date{ISO8601} %F:%L - %msg%n"
"""Cassandra's default pattern from 3.11 to 5.0."""
TAIL_BYTES = 1 << 16
# The numbers of lines without a match after which the pattern is wrong: at the beginning of a file, and after a line
# that matched, because some libraries print lines in another form.
FIRST_LINES, LATER_LINES = 3, 100
# Lines that continue a message, as in a stack trace or a dump of threads.
_CONTINUATION = re.compile(
    r"\t|\s+(?:at |\.\.\. )|Caused by: |Suppressed: |\.\.\. |[\w.$]+(?:Exception|Error|Throwable)\b|\Z"
    r"|\"|\s+(?:java\.lang\.Thread\.State: |Locked ownable )"
)


@dataclass(frozen=True)
class Piece:
    """A piece of the pattern as a regular expression; `word` is its name in messages."""

    expression: str
    kind: str
    word: str = ""
    dates: DateFormat | None = None

    @property
    def free(self) -> bool:
        """Whether the piece matches arbitrary text."""
        return self.kind in (_FREE, THREAD)


def pieces_of(pattern: str) -> list[Piece]:
    """Return the pieces of the pattern, with groups flattened. Raises ValueError for unsupported syntax."""
    pieces: list[Piece] = []
    # The format modifier of each group that has not ended, and the pieces before that group.
    groups: list[tuple[str, list[Piece]]] = []
    for token in _tokens(pattern):
        if token["group"]:
            groups.append((token["modifier"], pieces))
            pieces = []
        elif token["text"] == ")":
            if not groups:
                raise ValueError(r"unbalanced ')' (hint: write '\)' for a literal parenthesis)")
            modifier, before = groups.pop()
            pieces = before + _grouped(modifier, pieces)
        else:
            pieces.append(_converted(token) if token["word"] else _text(token))
    if groups:
        raise ValueError("unbalanced '%('")
    return [piece for piece in pieces if piece.expression or piece.kind == NEWLINE]


def _tokens(pattern: str) -> Iterator[re.Match[str]]:
    for token in _TOKEN.finditer(pattern):
        if token["text"] == "%":
            raise ValueError(r"'%' without a conversion word (hint: write '\%' for a literal percent sign)")
        if token["nested"]:
            raise ValueError(f"%{token['word']}(...) is not supported (hint: leave out colours and replacements)")
        yield token


def _text(token: re.Match[str]) -> Piece:
    text = token["text"]
    if text is None:
        if token["escaped"] not in _ESCAPED:
            raise ValueError(rf"unknown escape '\{token['escaped']}' (hint: write '\\' for a literal backslash)")
        text = _ESCAPED[token["escaped"]]
    return Piece(re.escape(text), NEWLINE if text == "\n" else _TEXT)


def _grouped(modifier: str, pieces: Iterable[Piece]) -> list[Piece]:
    if "." in modifier:
        raise ValueError("a group with a maximum width is not supported")
    before, after = _blanks(modifier)
    return [Piece(before, _BLANKS), *pieces, Piece(after, _BLANKS)]


def _converted(token: re.Match[str]) -> Piece:
    """Return the piece for a conversion word, including the padding to its width."""
    word, is_truncated = token["word"], "." in token["modifier"]
    kind = _WORDS.get(word)
    if kind is None:
        supported = "%level, %thread, %date, %logger, %file, %line, %msg, …"
        raise ValueError(f"conversion word %{word} is not supported; supported: {supported}")
    before, after = _blanks(token["modifier"])
    if is_truncated and kind in (DATE, _NUMBER):
        kind = _FREE
    dates = _dates(token["options"]) if kind == DATE else None
    expressions = {
        _LEVEL: "[A-Z]{1,5}" if is_truncated else "TRACE|DEBUG|INFO|WARN|ERROR",
        DATE: dates.expression if dates else "",
        _NUMBER: r"\?|-?\d{1,20}",
        MESSAGE: ".*",
    }
    if kind in expressions:
        return Piece(f"{before}(?:{expressions[kind]}){after}", kind, f"%{word}", dates)
    is_free = kind in (_FREE, THREAD)
    return Piece(f".{{0,{MAX_WORD_CHARS}}}?" if is_free else before + after, kind, f"%{word}")


def _blanks(modifier: str) -> tuple[str, str]:
    """Return regular expressions for the padding before and after a piece. Raises ValueError."""
    match = _MODIFIER.fullmatch(modifier)
    if match is None:
        raise ValueError(f"'%{modifier}' is not a valid width (hint: use %-5 or %-20.30, for example)")
    width = int(match["least"] or "0")
    if width > MAX_WIDTH:
        raise ValueError(f"the width {width} exceeds {MAX_WIDTH}")
    blanks = f" {{0,{width}}}" if width else ""
    return ("", blanks) if match["left"] else (blanks, "")


def _dates(options: str | None) -> DateFormat:
    values = ["".join(parts).strip() for parts in _OPTION.findall(options or "")]
    text, zone = (*values, "", "")[:2]
    text = text or "ISO8601"
    try:
        return date_format(DATE_FORMATS.get(text, text), zone_of(zone) if zone else None)
    except ValueError as error:
        raise ValueError(f'{error} (hint: quote a format that contains a comma: %date{{"HH:mm:ss,SSS"}})') from None


class Line(NamedTuple):
    """The parts of a log line; those that the pattern does not contain are empty."""

    thread: str
    date: str
    message: str


@dataclass(frozen=True)
class LogPattern:
    """Parses the lines that logback writes with one pattern."""

    text: str
    _expression: re.Pattern[str]
    _dates: DateFormat | None

    def line(self, text: str) -> Line | None:
        """Return the parts of a line (without its end), or None if it does not match, as in a stack trace."""
        match = self._expression.match(text)
        if match is None:
            return None
        parts = match.groupdict("")
        return Line(*(parts.get(name, "").strip() for name in Line._fields))

    def time_s(self, line: Line, now_s: float) -> float | None:
        """Return the line's time in seconds since the epoch, or None if its date cannot be parsed.

        `now_s` resolves the ambiguous hour at the end of daylight saving time.
        """
        return self._dates.seconds(line.date, now_s) if self._dates and line.date else None


def parse(pattern: str) -> LogPattern:
    """Return a parser for the lines that logback writes with `pattern`. Raises ValueError with a one-line message."""
    try:
        head, tail = _around_message(pieces_of(pattern))
        expression = re.compile(_head(head) + _tail(tail), re.DOTALL)
    except ValueError as error:
        raise ValueError(f"log pattern '{one_line(pattern)}': {error}") from None
    dates = next((piece.dates for piece in head if piece.kind == DATE), None)
    return LogPattern(pattern, expression, dates)


def _around_message(pieces: Sequence[Piece]) -> tuple[Sequence[Piece], Sequence[Piece]]:
    """Return the pieces before the message and those after it on its line. Raises ValueError."""
    kinds = [piece.kind for piece in pieces]
    if kinds.count(MESSAGE) != 1:
        raise ValueError(f"{'more than one' if MESSAGE in kinds else 'no'} %msg; exactly one is required")
    index = kinds.index(MESSAGE)
    if NEWLINE in kinds[:index]:
        raise ValueError("%n before %msg: the message must be on the first line")
    end = kinds.index(NEWLINE, index) if NEWLINE in kinds[index:] else len(pieces)
    return pieces[:index], pieces[index + 1 : end]


def _head(pieces: Sequence[Piece]) -> str:
    """Return the regular expression for the pieces before the message. Raises ValueError.

    A free-form piece ends where the pieces after it first match. Lookahead groups make that choice final, so that no
    line can cause exponential backtracking.
    """
    last = next((piece for piece in reversed(pieces) if piece.kind != _BLANKS), None)
    if last is not None and last.free:
        raise ValueError(f"no text between {last.word} and %msg: the start of the message is ambiguous")
    names: set[str] = set()
    parts = [""]
    for piece in pieces:
        if piece.free:
            parts.append("")
        expression, name = piece.expression, piece.kind
        if name in (THREAD, DATE) and name not in names:
            expression = f"(?P<{name}>{expression})"
            names.add(name)
        parts[-1] += expression
    ahead = (f"(?=(?P<part{number}>{part}))(?P=part{number})" for number, part in enumerate(parts) if number)
    return parts[0] + "".join(ahead)


def _tail(pieces: Sequence[Piece]) -> str:
    """Return the regular expression for the message and the pieces after it. Raises ValueError."""
    for piece in pieces:
        if piece.free:
            raise ValueError(f"{piece.word} after %msg: the end of the message is ambiguous")
    after = "".join(piece.expression for piece in pieces)
    return rf"(?P<{MESSAGE}>.*){after}\Z" if after else f"(?P<{MESSAGE}>.*)"


def tail_lines(path: Path) -> list[str]:
    """Return the complete lines in the last 64 KiB of a file. Raises OSError and NotRegularError."""
    with closing(GrowingFile(path)) as file:
        begin = max(0, file.size() - TAIL_BYTES)
        file.seek(begin)
        text = file.read(TAIL_BYTES).decode(errors="replace")
    # The last part is empty or an incomplete line, and the first one may be incomplete, too.
    return [line.removesuffix("\r") for line in text.split("\n")[1 if begin else 0 : -1]]


def unmatched(pattern: LogPattern, lines: Iterable[str]) -> int:
    """Return the number of lines that begin a message if none of them matches the pattern; 0 if one does."""
    first_lines = [line for line in lines if not _CONTINUATION.match(line)]
    return 0 if any(map(pattern.line, first_lines)) else len(first_lines)


class PatternCheck:
    """Counts the lines of a log that do not match its pattern."""

    def __init__(self, pattern: LogPattern) -> None:
        self._pattern = pattern
        self._unmatched = 0
        self._limit = FIRST_LINES
        self._reported = False

    def begin(self, path: Path) -> None:
        """Take the lines that a log already has into account."""
        try:
            lines = tail_lines(path)
        except (OSError, NotRegularError):
            return
        if count := unmatched(self._pattern, lines):
            self._unmatched, self._limit = count, 1
        elif lines:
            self._limit = LATER_LINES

    def next_file(self) -> None:
        """Begin with the next file of a log that was rotated."""
        self._unmatched, self._limit = 0, FIRST_LINES

    def add(self, text: str, *, matches: bool) -> None:
        if matches:
            self._unmatched, self._limit, self._reported = 0, LATER_LINES, False
        elif not _CONTINUATION.match(text):
            self._unmatched += 1

    def take_problem(self) -> str:
        """Return that the pattern is wrong, as text; "" if it is not, or if that was reported before."""
        count = self._unmatched
        if self._reported or count < self._limit:
            return ""
        self._reported = True
        if self._limit == LATER_LINES:
            return f"none of the last {count} lines matches the log's pattern, so they have no events"
        lines = f"none of the {count} lines read so far matches" if count > 1 else "the line read so far does not match"
        return f"{lines} the log's pattern, so it has no events"

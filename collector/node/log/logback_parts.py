"""The pieces of a logback pattern (conversion words, text, groups), each as a regular expression."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from collector.node.log.java_dates import DateFormat, date_format, zone_of

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

    @property
    def blank(self) -> bool:
        """Whether the piece is only padding."""
        return self.kind == _BLANKS


@dataclass
class _Group:
    """A group in the pattern whose closing parenthesis has not been read yet, with its format modifier."""

    modifier: str
    pieces: list[Piece] = field(default_factory=list)


def pieces_of(pattern: str) -> list[Piece]:
    """Return the pieces of the pattern, with groups flattened. Raises ValueError for unsupported syntax."""
    groups = [_Group("")]
    for token in _tokens(pattern):
        if token["group"]:
            groups.append(_Group(token["modifier"]))
        elif token["text"] == ")":
            if len(groups) == 1:
                raise ValueError(r"unbalanced ')' (hint: write '\)' for a literal parenthesis)")
            group = groups.pop()
            groups[-1].pieces += _grouped(group)
        else:
            groups[-1].pieces.append(_converted(token) if token["word"] else _text(token))
    if len(groups) > 1:
        raise ValueError("unbalanced '%('")
    return [piece for piece in groups[0].pieces if piece.expression or piece.kind == NEWLINE]


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


def _grouped(group: _Group) -> list[Piece]:
    if "." in group.modifier:
        raise ValueError("a group with a maximum width is not supported")
    before, after = _blanks(group.modifier)
    return [Piece(before, _BLANKS), *group.pieces, Piece(after, _BLANKS)]


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

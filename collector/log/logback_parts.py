"""What a logback pattern is made of: conversion words, text and groups, each as what it writes."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from collector.log.java_dates import DateFormat, date_format, zone_of

DATE_FORMATS = {"ISO8601": "yyyy-MM-dd HH:mm:ss,SSS", "STRICT": "yyyy-MM-dd'T'HH:mm:ss,SSS"}
# Bounds for what a line may make the search do: it was written by somebody else.
LONGEST_WORD, WIDEST = 1000, 200

LEVEL, THREAD, DATE, MESSAGE, NEWLINE = "level", "thread", "date", "message", "newline"
_FREE, _NUMBER, _NOTHING, _TEXT, _BLANKS = "free", "number", "nothing", "text", "blanks"
_WORDS = {
    **dict.fromkeys(("level", "le", "p"), LEVEL),
    **dict.fromkeys(("date", "d"), DATE),
    **dict.fromkeys(("message", "msg", "m"), MESSAGE),
    **dict.fromkeys(("thread", "t"), THREAD),
    **dict.fromkeys(("logger", "lo", "c", "class", "C", "file", "F", "method", "M", "mdc", "X", "marker"), _FREE),
    **dict.fromkeys(("contextName", "cn", "property", "kvp", "maskedKvp"), _FREE),
    **dict.fromkeys(("line", "L", "relative", "r", "micros", "ms", "lsn", "sequenceNumber", "sn"), _NUMBER),
    # Stack traces begin on lines of their own.
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
    """What a part of the pattern writes, as a regular expression; `word` is what messages call it."""

    expression: str
    kind: str
    word: str = ""
    dates: DateFormat | None = None

    @property
    def free(self) -> bool:
        """Whether it may be anything."""
        return self.kind in (_FREE, THREAD)

    @property
    def blank(self) -> bool:
        """Whether it is only the room that a width leaves."""
        return self.kind == _BLANKS


@dataclass
class _Group:
    """A group of the pattern that is being read, with the width that is asked of the whole."""

    modifier: str
    pieces: list[Piece] = field(default_factory=list)


def pieces_of(pattern: str) -> list[Piece]:
    """Return what the pattern is made of, its groups resolved. Raises ValueError for what is not understood."""
    groups = [_Group("")]
    for token in _tokens(pattern):
        if token["group"]:
            groups.append(_Group(token["modifier"]))
        elif token["text"] == ")":
            if len(groups) == 1:
                raise ValueError(r"a ')' closes no group: as text it is written '\)'")
            group = groups.pop()
            groups[-1].pieces += _grouped(group)
        else:
            groups[-1].pieces.append(_converted(token) if token["word"] else _text(token))
    if len(groups) > 1:
        raise ValueError("a group '%(' is not closed")
    return [piece for piece in groups[0].pieces if piece.expression or piece.kind == NEWLINE]


def _tokens(pattern: str) -> Iterator[re.Match[str]]:
    for token in _TOKEN.finditer(pattern):
        if token["text"] == "%":
            raise ValueError(r"a '%' stands before no word: as text it is written '\%'")
        if token["nested"]:
            raise ValueError(f"%{token['word']}(...) cannot be taken apart: leave out colours and replacements")
        yield token


def _text(token: re.Match[str]) -> Piece:
    text = token["text"]
    if text is None:
        if token["escaped"] not in _ESCAPED:
            raise ValueError(rf"'\{token['escaped']}' means nothing: a backslash is written '\\'")
        text = _ESCAPED[token["escaped"]]
    return Piece(re.escape(text), NEWLINE if text == "\n" else _TEXT)


def _grouped(group: _Group) -> list[Piece]:
    if "." in group.modifier:
        raise ValueError("a group that is cut short cannot be taken apart")
    before, after = _blanks(group.modifier)
    return [Piece(before, _BLANKS), *group.pieces, Piece(after, _BLANKS)]


def _converted(token: re.Match[str]) -> Piece:
    """Return what a conversion word writes, with the room that its width leaves around it."""
    word, cut = token["word"], "." in token["modifier"]
    kind = _WORDS.get(word)
    if kind is None:
        raise ValueError(f"%{word} is not known; known are %level, %thread, %date, %logger, %file, %line, %msg, …")
    before, after = _blanks(token["modifier"])
    if cut and kind in (DATE, _NUMBER):
        kind = _FREE
    dates = _dates(token["options"]) if kind == DATE else None
    written = {
        LEVEL: "[A-Z]{1,5}" if cut else "TRACE|DEBUG|INFO|WARN|ERROR",
        DATE: dates.expression if dates else "",
        _NUMBER: r"\?|-?\d{1,20}",
        MESSAGE: ".*",
    }
    if kind in written:
        return Piece(f"{before}(?:{written[kind]}){after}", kind, f"%{word}", dates)
    free = kind in (_FREE, THREAD)
    return Piece(f".{{0,{LONGEST_WORD}}}?" if free else before + after, kind, f"%{word}")


def _blanks(modifier: str) -> tuple[str, str]:
    """Return regular expressions for the blanks before and after what has this width. Raises ValueError."""
    found = _MODIFIER.fullmatch(modifier)
    if found is None:
        raise ValueError(f"'%{modifier}' is no width; one looks like %-5 or %-20.30")
    least = int(found["least"] or "0")
    if least > WIDEST:
        raise ValueError(f"a width of {least} is more than {WIDEST}")
    blanks = f" {{0,{least}}}" if least else ""
    return ("", blanks) if found["left"] else (blanks, "")


def _dates(options: str | None) -> DateFormat:
    given = ["".join(parts).strip() for parts in _OPTION.findall(options or "")]
    text, zone = (*given, "", "")[:2]
    text = text or "ISO8601"
    try:
        return date_format(DATE_FORMATS.get(text, text), zone_of(zone) if zone else None)
    except ValueError as error:
        raise ValueError(f'{error} (a format with a comma is put in quotes: %date{{"HH:mm:ss,SSS"}})') from None

"""Finds secrets in the words of a command line."""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from collector.redaction.secret_forms import (
    USER_AND_COLON,
    Span,
    is_ordinary,
    is_secret_name,
    is_secret_value,
    password_offset,
    takes_secret,
)

SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "ash", "su"))
# Options whose value is USER:PASSWORD; with a program that is not listed below, a port is not a password.
_USER_PASSWORD = frozenset(
    (
        *("-u", "-U", "-A", "-a", "--user", "--proxy-user", "--auth"),
        *("--basic", "--basic-auth", "--login", "--userpass", "--cert"),
    )
)
# Options with one letter that take a password, a cookie or USER:PASSWORD, by program.
_PASSWORD_OPTIONS = {
    **dict.fromkeys(("sshpass", "cqlsh", "mongo", "mongosh", "mongodump", "dsbulk"), "p"),
    **dict.fromkeys(("docker login", "podman login", "az login"), "p"),
    **dict.fromkeys(("redis-cli", "redis-benchmark", "memtier_benchmark", "valkey-cli", "jmeter"), "a"),
    **dict.fromkeys(("easy-cass-stress", "tlp-stress", "sqlcmd", "ipmitool"), "P"),
    "curl": "b",
    "ab": "C",
    "ldapsearch": "w",
}
_ATTACHED_PASSWORDS = frozenset(("mysql", "mysqladmin", "mysqldump", "mysqlslap", "mariadb", "sshpass", "cqlsh"))
_PAIR_OPTIONS = {"curl": "uUE", "ab": "AP", "hey": "a", "oha": "a", "http": "a", "https": "a", "xh": "a", "wget": ""}
_PROGRAMS = frozenset((*_PASSWORD_OPTIONS, *_ATTACHED_PASSWORDS, *_PAIR_OPTIONS, "nodetool", "sstableloader"))
# A name and a value in one word: `password=x`, `-Ddb.password=x`, `--token=x`, `/password:x`, `X-Api-Key: x`.
_ASSIGNMENT = re.compile(r"(?P<name>[/-]{0,2}[\w.\-\[\]]{1,200})(?:\+?=|:(?!//))[ \t]*(?P<value>.*)", re.DOTALL)
_OPTION = re.compile(r"--?[\w.\-]+")
# A name that stands alone before its value: `config set requirepass x`, `aws configure set aws_secret_access_key x`.
_BARE_NAME = re.compile(r"requirepass|\w*secret_access_key", re.IGNORECASE)
# USER:PASSWORD@HOST without a scheme, also as Go's drivers write it.
_PAIR_AT_HOST = re.compile(
    rf"{USER_AND_COLON}(?P<value>(?=[^@]*[^\d@])[^\s:/@]+)@(?!sha\d)(?:[\w.\-]+(?=[:/,]|$)|\w+\()"
)
_ATTACHED_PW = re.compile(r"-pw(?!d$|d=|[-_f])(?P<value>.+)", re.DOTALL)
_SHELL_WORD = re.compile(r"(?:'[^']*'|\"(?:\\.|[^\"\\])*\"|\\[^\n]|[^\s'\"\\;|&<>()`])+")
_REFERENCE = re.compile(r"\$(?:\w+|\{\w+\}|\(.*)?")


@dataclass(frozen=True)
class Word:
    """A word of a command line: where the secret in it is, if it has one, and whether it is a shell script.

    A script is the argument of `sh -c`, or several words that are no single value; `script_words` returns its words.
    """

    text: str
    secret: Span | None = None
    is_script: bool = False

    @property
    def value(self) -> str:
        """The secret, which differs from its text inside a quoted script."""
        return self.text[slice(*self.secret)] if self.secret else ""


def examined(words: Sequence[str], raw: Sequence[str] = ()) -> Iterator[Word]:
    """Yield each word of a command line, with the secret that its position or the whole word shows.

    `raw` are the same words as they are written in a shell script, in which `$NAME` stands for a value.
    """
    program, has_shell = "", False
    for index, word in enumerate(words):
        name, before = ("", "", *words[max(index - 2, 0) : index])[-2:]
        base = f"{before} login" if word == "login" else word.rpartition("/")[2]
        program = base if base in _PROGRAMS else program
        if has_shell and re.fullmatch(r"-\w*c", before):
            yield Word(word, is_script=True)
            continue
        has_shell = has_shell or before.rpartition("/")[2] in SHELLS
        span = (0, len(word)) if _is_after_name(name, before) else _span(word, before, program)
        if span is None:
            yield Word(word, is_script=bool(re.search(r"\s", word)) and word[:1] not in "{[")
            continue
        value = word[slice(*span)]
        named = _ASSIGNMENT.match(word[: span[0]])
        is_reference = bool(raw) and "'" not in raw[index] and _REFERENCE.fullmatch(value)
        is_ordinary_value = is_ordinary(named["name"] if named else before, value)
        is_secret = is_secret_value(value) and not is_ordinary_value and not is_reference
        yield Word(word, span if is_secret else None)


def _is_after_name(name: str, before: str) -> bool:
    """Return whether the two words before a word name a secret: `password =`, `Authorization: Bearer`."""
    if before in ("=", ":"):
        return is_secret_name(name)
    last = name if name and before.lower() in ("basic", "bearer", "token") else before
    return last.endswith((":", "=")) and is_secret_name(last[:-1])


def script_words(script: str) -> list[tuple[Span, str]]:
    """Return the words of a shell script without their quotes, each with its place in the script."""
    return [(match.span(), _unquoted(match[0])) for match in _SHELL_WORD.finditer(script)]


def _unquoted(text: str) -> str:
    try:
        return "".join(shlex.split(re.sub(r"\$(?=['\"])", "", text)))
    except ValueError:
        return text


def _span(word: str, before: str, program: str) -> Span | None:
    """Return where the secret in a word is, given the word before it; None if the word has no secret."""
    is_named = _BARE_NAME.fullmatch(before) or (_OPTION.fullmatch(before) and takes_secret(before))
    if is_named and not re.match(r"--[A-Za-z]", word):
        return 0, len(word)
    if pair := _PAIR_AT_HOST.match(word):
        return pair.span("value")
    return _after_option(word, before, program) or _in_assignment(word) or _attached(word, program)


def _after_option(word: str, before: str, program: str) -> Span | None:
    """Return where a secret is that only the option before it shows."""
    letter = before[-1:] if re.fullmatch(r"-[A-Za-z#]+", before) else ""
    # Letters may be combined: `curl -su USER:PASSWORD`.
    is_single = len(before) == 2 or program == "curl"
    if letter and is_single and letter in _PASSWORD_OPTIONS.get(program, ()):
        return (0, len(word)) if letter != "b" or "=" in word else None
    is_pair = bool(letter) and is_single and letter in _PAIR_OPTIONS.get(program, ())
    if not is_pair and before not in _USER_PASSWORD:
        return None
    if is_pair and "://" not in word:
        offset = word.find(":") + 1
    else:
        # A user agent, as in `curl -A`, has spaces.
        offset = 0 if re.search(r"\s", word) else password_offset(word) or 0
    return (offset, len(word)) if offset else None


def _in_assignment(word: str) -> Span | None:
    match = _ASSIGNMENT.match(word)
    if match is None:
        return None
    if is_secret_name(match["name"].rstrip("]")):
        return match.span("value")
    if match["name"] in _USER_PASSWORD:
        offset = password_offset(match["value"])
        return None if offset is None else (match.start("value") + offset, len(word))
    return None


def _attached(word: str, program: str) -> Span | None:
    """Return where a secret is that follows its option without a separator."""
    if match := _ATTACHED_PW.fullmatch(word):
        return match.span("value")
    if program in _ATTACHED_PASSWORDS and word.startswith("-p") and len(word) > 2:
        return 2, len(word)
    letters = _PAIR_OPTIONS.get(program)
    flags = "[A-Za-z#]*?" if program == "curl" else ""
    if letters and (match := re.match(rf"-{flags}[{letters}][^:/]*:(?!//)", word)):
        return match.end(), len(word)
    return None

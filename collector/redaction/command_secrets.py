"""Finds secrets in the words of a command line."""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from collector.redaction.secret_forms import Span, is_secret_value, password_offset
from collector.redaction.secret_names import is_secret_name, takes_secret

SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "ash", "su"))
# Options whose value is USER:PASSWORD; with a program that is not listed below, a port is not a password.
_USER_PASSWORD = frozenset(("-u", "-U", "-A", "-a", "--user", "--proxy-user", "--auth", "--basic-auth", "--userpass"))
# Options with one letter that take a password, a cookie or USER:PASSWORD, by program.
_PASSWORD_OPTIONS = {
    "sshpass": "p",
    "cqlsh": "p",
    "mongo": "p",
    "mongosh": "p",
    "mongodump": "p",
    "redis-cli": "a",
    "redis-benchmark": "a",
    "memtier_benchmark": "a",
    "valkey-cli": "a",
    "jmeter": "a",
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
_ATTACHED_PW = re.compile(r"-pw(?!d$|d=|[-_f])(?P<value>.+)", re.DOTALL)
_SHELL_WORD = re.compile(r"(?:'[^']*'|\"(?:\\.|[^\"\\])*\"|\\.|[^\s'\"\\;|&<>()])+", re.DOTALL)
_REFERENCE = re.compile(r"\$(?:\w+|\{\w+\}|\(.*)?")


@dataclass(frozen=True)
class WordSecret:
    """A secret in a word: where it is, and its value, which differs from that text inside a quoted script."""

    index: int
    span: Span
    value: str


def word_secrets(words: Sequence[str], *, is_script: bool = False) -> Iterator[WordSecret]:
    """Yield the secrets in the words of a command that are recognised by their position or by the whole word.

    If `is_script` is true, the words are those of a shell script, in which `$NAME` stands for a value. Secrets inside
    a word that is a script are not yielded; `script_words` returns the words of such a script.
    """
    program = ""
    for index, word in enumerate(words):
        base = word.rpartition("/")[2]
        program = base if base in _PROGRAMS else program
        before = words[index - 1] if index else ""
        span = (0, len(word)) if _is_after_name(words[max(index - 2, 0) : index]) else _span(word, before, program)
        if span is None or is_script_word(words, index):
            continue
        value = word[slice(*span)]
        if is_secret_value(value) and not (is_script and _REFERENCE.fullmatch(value)):
            yield WordSecret(index, span, value)


def _is_after_name(before: Sequence[str]) -> bool:
    """Return whether the words before a word end with the name of a secret: `password =`, `Authorization: Bearer`."""
    *names, last = before or ("",)
    if last in ("=", ":"):
        return bool(names) and is_secret_name(names[-1])
    if last.lower() in ("basic", "bearer", "token") and names:
        last = names[-1]
    return last.endswith((":", "=")) and is_secret_name(last[:-1])


def is_script_word(words: Sequence[str], index: int) -> bool:
    """Return whether a word is a shell script: the argument of `sh -c`, or several words that are no single value."""
    word = words[index]
    if re.fullmatch(r"-\w*c", words[index - 1] if index else "") and any(
        before.rpartition("/")[2] in SHELLS for before in words[: index - 1]
    ):
        return True
    return (
        bool(re.search(r"\s", word))
        and _span(word, words[index - 1] if index else "", "") is None
        and word[:1] not in "{["
    )


def script_words(script: str) -> list[tuple[Span, str]]:
    """Return the words of a shell script without their quotes, each with its place in the script."""
    return [(match.span(), _unquoted(match[0])) for match in _SHELL_WORD.finditer(script)]


def _unquoted(text: str) -> str:
    try:
        return "".join(shlex.split(text))
    except ValueError:
        return text


def _span(word: str, before: str, program: str) -> Span | None:
    """Return where the secret in a word is, given the word before it; None if the word has no secret."""
    if _OPTION.fullmatch(before) and takes_secret(before) and not re.match(r"--[A-Za-z]", word):
        return 0, len(word)
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

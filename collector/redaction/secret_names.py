"""Decides by its name whether the value of an option, a variable, a header or a JSON member is a secret."""

import re
from functools import lru_cache

_SECRET = re.compile(
    r"pass|pwd|pswd|secret|token|credential|creds|authorization|cookie|bearer|jwt|sess(?:ion)?[-_.]?id|passwort|kennwort|contrase|senha"
    r"|(?:api|access|private|auth|account|shared|master|signing|encryption|license|subscription|storage|hmac)[-_.]?key"
    r"|accesssignature|(?:^|[-_.])(?:auth|pw|otp)$|auth$(?<=[-_.]auth)|(?<![a-z])[a-z]{0,4}pw$|redisclia?_?auth"
)
# Ordinary words that contain one of the words above. `--passes` is a count, and a token of Cassandra is a number.
_ORDINARY = re.compile(
    r"secretar(?:y|ies)|(?:by|com|encom|sur|tres)pass(?:es|ed|ing)?|pass(?:es|ed|ing|ive(?:ly)?|age|enger|ions?)(?![a-z])"
    r"|passwordless|allocate_tokens_for\w*|pass[-_.]?(?:through|count|rate|ratio|fail|percent(?:age)?)"
    r"|(?:num|max|min|initial|total|vnode|number|prompt|completion|input|output)[-_.]?(?:of[-_.]?)?tokens?(?![a-z])"
    r"|tokens?[-_.]?(?:per|counts?|ranges?|ring|aware|map|rate|limit|bucket|size|split|alloc|metadata|partition|iz)\w*"
)
# `--password-file` names a file, and `token-ttl` is a time. casstat reads passwords from files for this reason.
_ABOUT_A_SECRET = re.compile(
    r"(?:file|name|path|dir|directory|folder|url|uri|endpoint|provider|policy|type|length|len|size|prompt|stdin|ttl|timeout"
    r"|expiry|validity|interval|entries|enabled|count|algorithm|authenticator|application_credentials|askpass|jar|java|py|go|js)$"
)
_TAKES_NO_VALUE = re.compile(r"^-*(?:ask|no|without|prompt|require|disable|enable|skip|show|hide|print|has|is)[-_]")
_IN_URLS = re.compile(r"(?:^|[-_.])(?:sig|signature|sid|code|otp|ticket|assertion|nonce)$")
# What is no secret although its name is one's: the number of tokens or cookies, a token of Cassandra, and a folder.
_COUNT = re.compile(r"\[?-?\d{1,9}|\[[-\d, ]+\]?")
_CASSANDRA_TOKEN = re.compile(r"[\[(]?-?\d{15,20}(?!\w)")
_HEADER = re.compile(r"(?:^|[-_.])(?:authorization|cookie2?)$|^x-|phrase$")


@lru_cache(4096)
def is_secret_name(name: str) -> bool:
    """Return whether a name such as `--db-password`, `JMX_TOKEN` or `X-Api-Key` names a secret."""
    lower = name.lower().strip("-_./")
    if _ABOUT_A_SECRET.search(lower):
        return False
    return bool(_SECRET.search(_ORDINARY.sub(" ", lower)))


def is_ordinary(name: str, value: str) -> bool:
    """Return whether a value is a number or a folder that only has the name of a secret, such as `tokens=256`."""
    lower = name.lower().strip("-_./:=")
    if lower.endswith(("tokens", "cookies", "secrets", "passwords")) and _COUNT.fullmatch(value.rstrip(",;})")):
        return True
    if lower.endswith(("token", "tokens")):
        return _CASSANDRA_TOKEN.match(value) is not None
    return lower in ("pwd", "oldpwd") and value.startswith("/")


def is_secret_in_url(name: str) -> bool:
    """Return whether a parameter of a URL with this name is a secret."""
    return is_secret_name(name) or bool(_IN_URLS.search(name.lower()))


def takes_secret(option: str) -> bool:
    """Return whether the word after an option such as `--password` is a secret."""
    return option.startswith("-") and is_secret_name(option) and not _TAKES_NO_VALUE.search(option.lower())


def has_long_value(name: str) -> bool:
    """Return whether a secret with this name may contain spaces: a header, or a passphrase."""
    return bool(_HEADER.search(name.lower()))

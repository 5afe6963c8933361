"""Finds secrets in text, such as a log or a shell script: by the names of values, and by their forms."""

import re
from collections.abc import Callable, Iterator
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
# Secrets if they are parameters of a URL.
_IN_URLS = re.compile(r"(?:^|[-_.])(?:sig|signature|sid|code|otp|ticket|assertion|nonce)$")
# What is no secret although its name is one's: the number of tokens or cookies, a token of Cassandra, and a folder.
_COUNT = re.compile(r"\[?-?\d{1,9}|\[[-\d, ]+\]?")
_CASSANDRA_TOKEN = re.compile(r"[\[(]?-?\d{15,20}(?!\w)")
# Secrets that may contain spaces: headers, and passphrases.
_LONG_VALUE = re.compile(r"(?:^|[-_.])(?:authorization|cookie2?)$|^x-|phrase$")


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


def takes_secret(option: str) -> bool:
    """Return whether the word after an option such as `--password` is a secret."""
    return option.startswith("-") and is_secret_name(option) and not _TAKES_NO_VALUE.search(option.lower())


REDACTED = "REDACTED"
"""What a secret is replaced with; several values of a parameter are REDACTED-1, REDACTED-2 and so on."""

Span = tuple[int, int]
"""The begin and the end of a secret in a text."""
# Text with none of these contains no secret that has a form. Searching for them is much faster than the rest.
# Forms without a name need none of _SEPARATORS.
_SEPARATORS = (b"=", b":", b"-", b">", b"'", b'"', b"%", b"\\u003")
_BARE_HINTS = (
    *(b"hvs.", b"glsa_", b"glc_", b"github_", b"bearer ", b"basic ", b"eyj", b"akia", b"aiza", b"asia"),
    *(b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_"),
)
_HINTS = tuple(
    hint.encode()
    for hint in (
        *("pass", "pwd", "pswd", "pw", "secret", "token", "cred", "auth", "cookie", "bearer", "jwt", "phrase", "sess"),
        *("-u", "-a ", "-a=", "user ", "user=", "%2f%2f", "\\/\\/", "%3d", "-----begin ", "glpat-", "xox"),
        *("kennwort", "contrase", "senha", "otp", "identified", "accesssig", "@"),
    )
)
# In URLs, after `?`, `&` or `;`.
_URL_HINTS = (b"sig=", b"signature=", b"sid=", b"code=", b"otp=", b"ticket=", b"assertion=", b"nonce=")
_KEY_HINT = re.compile(
    rb"(?:api|access|private|auth|account|shared|master|signing|encryption|license|subscription|storage|hmac)\W{0,3}_?key|x-"
)
_PRIVATE_KEY = re.compile(
    r"-----BEGIN (?P<kind>[A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?)-----(?P<secret>.*?)(?:-----END (?P=kind)-----|\Z)",
    re.DOTALL,
)
_KEY_BEGIN, _KEY_END = (
    re.compile(rf"-----{word} (?P<kind>[A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?)-----") for word in ("BEGIN", "END")
)
# What terminals show as colours, or as another place of the cursor.
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
# A name, and what separates it from its value: `name=`, `"name": `, `--name `, `"--name", `, `name%3D`, `name\u003d`.
_NAME = re.compile(
    r"(?<![\w.\-])(?P<name>[\w.\-]{1,200})"
    r"(?:(?P<close>\\*[\"'`]\]?)?[ \t]*(?P<separator>=>|:=|[=:]|%3[dD]|%22%3[aA]|\\u003[dDaA])[ \t]*"
    r"|(?P<space>[ \t]+|\\*[\"'],[ \t]*(?=\\*[\"'])|,[ \t]*(?=[^\s\\\"'{\[(<,-])))"
)
# The begin of a list or an object, also in code: `["x"`, `{"name": "x"`, `Some("x"`; and one of its items.
_CONTAINER = re.compile(r"\w{0,20}[\[({][ \t]*(?=\\*[\"'`]|[\])}\r\n]|$)")
_ITEM = re.compile(
    r"[ \t,]*(?:\\*[\"'][^\"']{0,200}[\"'][ \t]*:[ \t]*)?"
    r"(?:(?P<escapes>\\*)(?P<quote>[\"'`])(?P<secret>.{0,1024}?)(?<!\\)(?P=escapes)(?P=quote)|[\w.+\-]+)"
)
_NO_SECRET = re.compile(
    rf"{REDACTED}(?:-\d+)?(?![A-Za-z0-9]).*|\*+\w*\**|[xX]{{3,}}|<\w+>|true|false|yes|no|none|null|-\d+|", re.IGNORECASE
)
_LAST_WORD = re.compile(r"([A-Za-z]{1,20}) $")
_IN_URL = re.compile(r"[^&\s\"'<>#,;\\]+")
_ENCODED = re.compile(r"(?:(?!%26|%20|%0[aAdD]|%22)[^&\s\"'<>])+")
# A comma ends a value if a number or another name follows, as in CSV and in `{password=x, port=1}`.
_BARE = re.compile(r"(?:(?!,-?\d+(?:\.\d+)?(?:,|$)|[,;&]\s*[\"']?[\w.\-]+[\"']?\s*[=:])[^\s\"'<\\`])+")
_REST = re.compile(r"[^\r\n]+")
_USER_PASSWORD = re.compile(r"(?<!\S)(?:-[uUaA]|--(?:proxy-)?user|--(?:basic-)?auth)[ \t=]+[\"']?(?P<pair>[^\s\"']+)")
_URL_PASSWORD = re.compile(
    r"(?<![a-z0-9+.\-])[a-z][a-z0-9+.\-]{0,30}:(?://|%2F%2F|\\/\\/)"
    r"(?:[^\s/?#\"'<>:@\[]{0,256}:(?!\d{1,5}(?:[/?#,]|$))(?P<password>[^\s\"'<>]{0,512}?)"
    r"@(?=[^\s\"'<>@/]{1,256}(?:[/?#\s\"'<>,]|$))"
    r"|(?P<user>(?=[^\s/@]{0,256}\d)[^\s/?#\"'<>:@]{20,256})@)",
    re.IGNORECASE,
)
# USER:PASSWORD@HOST:PORT without a scheme; `npm:x@1.2` and a Java object `x@1f` are none.
USER_AND_COLON = r"(?!(?:mailto|sip|user|name|from|to|email):)(?:[\w.\-]{1,256}=)?[\w.\-]{1,256}:"
_PASSWORD_AT_HOST = re.compile(
    rf"(?<![\w.\-]){USER_AND_COLON}(?=[^\s@]{{0,256}}[^\s\d@])(?P<password>[^\s:/@,\"'<>]{{1,256}})"
    r"@(?!sha\d)[\w.\-]{1,253}:\d{1,5}(?!\w)"
)
# A name at the end of a line, `<password>`, `"name": "password",` or `- name: PASSWORD`, and its value on the next one.
_LAST_NAME = (
    r"(?:<(?:[\w\-]{1,200}:)?(?P<element>[\w.\-]{1,200})(?:\s[^<>]{0,300})?>"
    r"|\b(?:name|key)[\"']?[ \t]*[=:][ \t]*[\"']?(?P<name>[\w.\-]{1,200})[\"']?,?)[ \t]*\r?\n"
)
_UNFINISHED = re.compile(rf"{_LAST_NAME}\Z")
_ON_TWO_LINES = re.compile(
    rf"{_LAST_NAME}[ \t]*(?:(?(element)(?P<text>[^<>\s][^<>\r\n]*)|(?!))"
    r"|[\"']?value[\"']?[ \t]*[=:][ \t]*"
    r"(?:(?P<quote>[\"'])(?P<quoted>.{0,1024}?)(?P=quote)|(?P<bare>[^\s\"'][^\r\n]*)))"
)
# Forms in which a name is not followed by its value, and tokens without a name.
_NAMED_ELSEWHERE = (
    # XML: `<password type="plain">x</password>`
    re.compile(
        r"<(?:[\w\-]+:)?(?P<name>[\w.\-]{1,200})(?:\s[^<>]{0,300})?>(?:<!\[CDATA\[)?(?P<secret>[^<\]\s][^<\]]*)"
    ),
    # `<entry key="password">x</entry>`, `<property name="password" value="x"/>`, `{"name":"password","value":"x"}`
    re.compile(
        r"\b(?:name|key|id)\\*[\"']?[ \t]*[=:][ \t]*\\*[\"'](?P<name>[\w.\-]{1,200})\\*[\"']"
        r"(?:[ \t,]*\\*[\"']?value\\*[\"']?[ \t]*[=:][ \t]*(?P<quote>\\*[\"'])(?P<quoted>.{0,1024}?)(?P=quote)"
        r"|[^<>]{0,300}>(?P<secret>[^<\s][^<]*))"
    ),
    re.compile(r"<(?P<name>[\w.\-]{1,200})[ \t]+value=(?P<quote>[\"'])(?P<secret>.{0,1024}?)(?P=quote)"),
)
_TOKENS = (
    # JSON Web Tokens, and keys of AWS, GitHub, GitLab, Google, Grafana, Slack and Vault
    re.compile(
        r"\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bgh[pousr]_\w{20,}|\bgithub_pat_\w{20,}"
        r"|\bglpat-[\w-]{16,}|\bgls?[ac]_\w{20,}|\bxox[abprs]-[\w-]{10,}|\bhvs\.[\w-]{20,}|\bAIza[\w-]{35}"
    ),
    re.compile(r"\bbearer\s+(?P<secret>(?=[^\s\"',]*\d|[^\s\"',]{20})[^\s\"',;]{8,})", re.IGNORECASE),
    re.compile(r"\b(?i:basic)\s+(?P<secret>(?=[A-Za-z0-9+/]*(?:[A-Z][a-z0-9]|[0-9=]))[A-Za-z0-9+/]{11,}=*)(?!\w)"),
    # PlainTextAuthProvider("joe", "x"), withCredentials("joe", "x")
    re.compile(
        r"(?:Auth|Credentials)\w*\(\s*(\\*[\"'])[^\"']{0,256}\1\s*,\s*(?P<quote>\\*[\"'])(?P<secret>.{0,1024}?)(?P=quote)"
    ),
    # CREATE USER joe WITH PASSWORD 'x'
    re.compile(r"\b(?:password|identified\s+by)\s+(?P<quote>\\*[\"'])(?P<secret>.{0,1024}?)(?P=quote)", re.IGNORECASE),
    # echo x | load --password-stdin
    re.compile(
        r"\b(?:echo|printf)\s+(?:-\w+\s+|[\"']?%s\S*\s+)?(?P<secret>[^\s|]{1,1024})\s*\|[^|]{0,256}\s--(?:pass\w*|token|secret)-stdin"
    ),
)


def has_hint(data: bytes) -> bool:
    """Return False if UTF-8 text certainly contains no secret that has a form."""
    lower = data.lower()
    if any(hint in lower for hint in _BARE_HINTS):
        return True
    if not any(separator in lower for separator in _SEPARATORS):
        return False
    if any(hint in lower for hint in _HINTS):
        return True
    if (b"?" in lower or b"&" in lower or b";" in lower) and any(hint in lower for hint in _URL_HINTS):
        return True
    return b"key" in lower and _KEY_HINT.search(lower) is not None


def open_private_key(text: str) -> int | None:
    """Return where a private key begins that does not end in the text; None if there is none."""
    ends = {match["kind"]: match.start() for match in _KEY_END.finditer(text)}
    return next(
        (match.start() for match in _KEY_BEGIN.finditer(text) if ends.get(match["kind"], 0) < match.end()), None
    )


def ends_in_name(line: str) -> bool:
    """Return whether the value of a secret may be on the next line."""
    match = _UNFINISHED.search(line)
    return match is not None and is_secret_name(match["element"] or match["name"])


def replaced(text: str, spans: Iterator[Span], replacement: Callable[[str], str]) -> str:
    """Return the text with its spans, which may overlap, replaced."""
    parts, end = [], 0
    for begin, stop in sorted(spans):
        if begin >= end:
            parts += [text[end:begin], replacement(text[begin:stop])]
        end = max(end, stop)
    return "".join([*parts, text[end:]])


def secret_spans(text: str) -> Iterator[Span]:
    """Yield where the secrets in a text are, in no order; they may overlap."""
    if not has_hint(encoded(text)):
        return
    if "-----BEGIN " in text:
        yield from (match.span("secret") for match in _PRIVATE_KEY.finditer(text))
    for match in _ON_TWO_LINES.finditer(text):
        span = match.span(next(group for group in ("text", "quoted", "bare") if match[group] is not None))
        if is_secret_name(match["element"] or match["name"]) and is_secret_value(text[slice(*span)]):
            yield span
    begin = 0
    for line in re.split(r"(?<=[\r\n])", text):
        if has_hint(encoded(line)):
            # A secret is also one if it, or what separates it from its name, is in colour.
            plain = _ESCAPE.sub(lambda match: " " * len(match[0]), line) if "\x1b" in line else line
            for shown in dict.fromkeys((line, plain)):
                yield from (
                    (begin + first, begin + last)
                    for first, last in _in_line(shown)
                    if is_secret_value(shown[first:last])
                )
        begin += len(line)


def encoded(text: str) -> bytes:
    """Return the bytes of text that was decoded with surrogateescape, or is from JSON."""
    try:
        return text.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        # JSON may contain half a surrogate pair.
        return text.encode(errors="surrogatepass")


def is_secret_value(value: str) -> bool:
    """Return whether a value may be a secret: it is not empty, redacted, masked, a truth value or a negative number."""
    return _NO_SECRET.fullmatch(value) is None


def _in_line(line: str) -> Iterator[Span]:
    if "@" in line:
        for match in _URL_PASSWORD.finditer(line):
            yield match.span("password" if match["password"] is not None else "user")
        yield from (match.span("password") for match in _PASSWORD_AT_HOST.finditer(line))
    yield from _named(line)
    for match in _USER_PASSWORD.finditer(line):
        offset = password_offset(match["pair"])
        if offset is not None:
            yield match.start("pair") + offset, match.end("pair")
    for form in _NAMED_ELSEWHERE:
        for match in form.finditer(line):
            if is_secret_name(match["name"]):
                yield match.span("quoted" if match.groupdict().get("quoted") else "secret")
    for form in _TOKENS:
        yield from (match.span("secret" if "secret" in form.groupindex else 0) for match in form.finditer(line))


def password_offset(pair: str) -> int | None:
    """Return where the password begins in USER:PASSWORD; None for a URL, an address with a port, or two numbers."""
    user, colon, password = pair.partition(":")
    if not colon or not password or password.startswith("/"):
        return None
    if password.isdecimal() and len(password) <= 5 and (user.isdecimal() or "." in user or user == "localhost"):
        return None
    return len(user) + 1


def _named(line: str) -> Iterator[Span]:
    position = 0
    while match := _NAME.search(line, position):
        position = match.end()
        # Without a value, the next name may begin where this one's value would.
        for value in _values(line, match):
            yield value
            position = max(position, value[1])


def _values(line: str, match: re.Match[str]) -> Iterator[Span]:
    """Yield where the value of a name is if it is a secret, or the strings in it if it is a list or an object."""
    before = line[match.start() - 1 : match.start()]
    name = match["name"]
    if name.lower() in ("key", "phrase") and (qualifier := _LAST_WORD.search(line[: match.start()][-21:])):
        name = f"{qualifier[1]}-{name}"
    if match["space"] is not None:
        is_secret = takes_secret(name) and not line.startswith("--", match.end())
    else:
        is_in_url = before in ("?", "&", ";")
        is_secret = is_secret_name(name) or (is_in_url and _IN_URLS.search(name.lower()) is not None)
        # `:` after a path belongs to a message about a file, such as /etc/passwd.
        is_secret = is_secret and (match["separator"], before) != (":", "/")
    if is_secret and (container := _CONTAINER.match(line, match.end())):
        position = container.end()
        while (item := _ITEM.match(line, position)) and item.end() > position:
            position = item.end()
            if item["secret"]:
                yield item.span("secret")
        return
    extent = _extent(line, match, before) if is_secret else None
    if extent is not None and not is_ordinary(name, line[slice(*extent)]):
        yield extent


def _extent(line: str, match: re.Match[str], before: str) -> Span | None:
    """Return where the value that begins after a name ends."""
    name, begin = match["name"], match.end()
    opening = re.compile(r"(?P<escapes>\\*)(?P<quote>[\"'`])").match(line, begin)
    is_listed = "," in (match["space"] or "")
    if opening and before == opening["quote"] and not match["close"] and not is_listed:
        # The quote encloses only the name, as in the list ["password:", "x"].
        return None
    if opening:
        closing = re.compile(_closing(opening["escapes"], opening["quote"])).search(line, opening.end())
        return opening.end(), closing.start() if closing else len(line.rstrip("\r\n"))
    if before in ("?", "&", ";") and match["separator"] == "=":
        return _span(_IN_URL.match(line, begin))
    if (match["separator"] or "").startswith("%"):
        return _span(_ENCODED.match(line, begin))
    if before and before in "'\"`" and not is_listed:
        # The quote encloses the name and the value: 'password=x y', "Authorization: Bearer x".
        escapes = match.start() - 1 - len(line[: match.start() - 1].rstrip("\\"))
        closing = re.compile(_closing("\\" * escapes, before)).search(line, begin)
        if closing:
            return begin, closing.start()
    if _LONG_VALUE.search(name.lower()):
        return _span(_REST.match(line, begin))
    span = _span(_BARE.match(line, begin))
    return None if span is None else (begin, begin + len(line[begin : span[1]].rstrip(",;)]}")) or span[1])


def _closing(escapes: str, quote: str) -> str:
    """Return the pattern of the quote that ends a value whose opening quote has these backslashes before it."""
    return rf"(?<!\\){re.escape(escapes)}{quote}" if escapes else rf"(?<!\\)(?:\\\\)*{quote}"


def _span(match: re.Match[str] | None) -> Span | None:
    return None if match is None else match.span()

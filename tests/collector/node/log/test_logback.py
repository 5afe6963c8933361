"""Logback patterns: lines are parsed with the pattern that they were written with, whatever their content."""

import re
import time
from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.node.log.logback import DEFAULT_PATTERN, Line, LogPattern, parse
from tests.collector.captures import FOLDER
from tests.collector.zones import CENTRAL_EUROPE, local_zone
from tests.every import every

STOCK = "INFO  [main] 2026-11-21 12:33:40,326 CassandraDaemon.java:686 - Startup complete"
MESSAGE, THREAD, TIME_S = "Compacted (x) [y] 100% - of: z", "Compaction Executor:2 [a]", 1761445500.123
# One event, written in Paris time by two real versions of Logback: 1.2.9 (Cassandra 4.0 and 4.1) and 1.5.18 (5.0).
RENDERED = [
    (release, pattern, written.replace("\\\\", "\\"))
    for release in ("1.2.9", "1.5.18")
    for line in (FOLDER / "logback" / f"{release}.tsv").read_text().splitlines()
    for pattern, written in [line.split("\t")]
]
LEVELS = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR")
BASES = ("%-5level", "%thread", "%d{ISO8601}", "%logger{36}", "%F:%L", "%X{host}", "%r", "%M", "%-20.30c")


def parsed_line(pattern: str, line: str) -> Line:
    parsed = parse(pattern).line(line)
    assert parsed is not None
    return parsed


def seconds(date_format: str, date: str, now_s: float = 0.0) -> float | None:
    pattern = parse(f"%d{{{date_format}}} - %msg%n")
    line = pattern.line(f"{date} - x")
    return pattern.time_s(line, now_s) if line else None


def utc_s(*parts: int) -> float:
    return datetime(*parts, tzinfo=timezone.utc).timestamp()  # type: ignore[misc,arg-type]


def test_cassandras_default_pattern_is_parsed() -> None:
    assert parsed_line(DEFAULT_PATTERN, STOCK) == Line("main", "2026-11-21 12:33:40,326", "Startup complete")


@every(("release", "pattern", "line"), RENDERED)
def test_lines_from_real_logback_versions_are_parsed(release: str, pattern: str, line: str) -> None:
    log_pattern = parse(pattern)
    parsed = log_pattern.line(line.removesuffix("\\n"))
    assert parsed is not None, release
    assert parsed.message == MESSAGE
    with local_zone(CENTRAL_EUROPE):
        time_s = log_pattern.time_s(parsed, TIME_S)
    # Ambiguous times give None: a time of day without a date, or a fraction that does not have three digits.
    has_time = re.search(r"%d(?!\{HH|.*SSSSSS)", pattern)
    whole_seconds = "Z}" in pattern or "EEE" in pattern
    assert time_s == ((int(TIME_S) if whole_seconds else TIME_S) if has_time else None)


@every(("release", "pattern", "line"), [case for case in RENDERED if re.search("%t|%thread", case[1])])
def test_thread_names_may_contain_any_character(release: str, pattern: str, line: str) -> None:
    parsed = parse(pattern).line(line)
    assert parsed is not None, release
    assert parsed.thread == THREAD


def test_padding_is_optional() -> None:
    assert parsed_line("%5p|%-8t|%msg%n", " WARN|main    |m").thread == "main"
    assert parsed_line("%5p|%-8t|%msg%n", "ERROR|longer than eight|m").thread == "longer than eight"
    assert parsed_line("%-20(%p %t) %msg%n", "INFO main            m").message == "m"
    assert parsed_line("%.-1p %msg%n", "W m").message == "m"


@every(
    "line",
    [
        "",
        "\tat org.apache.cassandra.db.Memtable.put(Memtable.java:206)",
        "java.lang.RuntimeException: INFO  [main] 2026-11-21 12:33:40,326 A.java:1 - no",
        "Caused by: x",
        "INFO  [main] 2026-11-21 A.java:1 - no",
        "INFO",
        "\x00" * 1000,
    ],
)
def test_lines_that_do_not_match_the_pattern_are_continuations(line: str) -> None:
    assert parse(DEFAULT_PATTERN).line(line) is None


def test_messages_may_be_empty_and_contain_any_character() -> None:
    head = STOCK.removesuffix("Startup complete")
    assert parsed_line(DEFAULT_PATTERN, head).message == ""
    assert parsed_line(DEFAULT_PATTERN, f"{head}a - b:1 - [c] 2026-11-21 12:33:40,326 \x00 \ufffd").message.startswith(
        "a - b:1"
    )


@every(
    ("pattern", "message"),
    [
        ("", "no %msg"),
        ("%d %p%n", "no %msg"),
        ("%msg %m%n", "more than one %msg"),
        ("%d %wrong %msg", "conversion word %wrong is not supported;"),
        ("%msgfoo", "conversion word %msgfoo is not supported;"),
        ("%d %t%msg", "no text between %t and %msg"),
        ("%-20(%p %t)%msg", "no text between %t and %msg"),
        ("%msg [%t]%n", "%t after %msg"),
        ("%d %n%msg%n", "%n before %msg"),
        (r"%d \n%msg%n", "%n before %msg"),
        ("%cyan(%p) %msg", "%cyan(...)"),
        ("%replace(%msg){'a','b'}", "%replace(...)"),
        ("(%p) %msg", "unbalanced ')'"),
        ("%(%p %msg", "unbalanced '%('"),
        ("%.5(%p) %msg", "maximum width"),
        ("100% %msg", r"write '\%'"),
        (r"\q%msg", r"unknown escape '\q'"),
        ("%msg\\", "unknown escape"),
        ("%5-p %msg", "'%5-' is not a valid width"),
        ("%9999p %msg", "the width 9999"),
        ("%d{HH:mm:ss,SSS} %msg", "unknown time zone 'SSS' (hint: quote a format that contains a comma"),
        ("%d{ISO8601, Nowhere/At_all} %msg", "unknown time zone 'Nowhere/At_all'"),
        ("%d{ISO8601, ../../etc/passwd} %msg", "unknown time zone"),
        ("%d{ISO8601, GMT+99} %msg", ""),
    ],
)
def test_unsupported_patterns_are_one_line_errors(pattern: str, message: str) -> None:
    with pytest.raises(ValueError, match="log pattern '") as caught:
        parse(pattern)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@given(st.text("%{}()\\'\",-.5pdmntXx {n}", max_size=30))
def test_any_pattern_is_parsed_or_a_one_line_error(pattern: str) -> None:
    try:
        parsed = parse(pattern)
    except ValueError as error:
        assert "\n" not in str(error)  # noqa: PT017 - parsing may also succeed
    else:
        assert isinstance(parsed, LogPattern)
        parsed.line(STOCK)


@every(
    ("date_format", "date", "expected"),
    [
        ("ISO8601, UTC", "2026-11-21 12:33:40,326", utc_s(2026, 11, 21, 12, 33, 40) + 0.326),
        ("null, UTC", "null", None),
        ("yyyy-MM-dd HH:mm:ss, GMT-03:30", "2026-11-21 12:33:40", utc_s(2026, 11, 21, 16, 3, 40)),
        ("yyyy-MM-dd'T'HH:mm:ssXXX", "2026-11-21T12:33:40Z", utc_s(2026, 11, 21, 12, 33, 40)),
        ("yyyy-MM-dd'T'HH:mm:ssX", "2026-11-21T12:33:40-05", utc_s(2026, 11, 21, 17, 33, 40)),
        ("d MMM yy h:mm:ss a, UTC", "1 Feb 26 12:00:00 AM", utc_s(2026, 2, 1)),
        ("d MMMM yyyy h:mm:ss a, UTC", "1 february 2026 1:00:00 PM", utc_s(2026, 2, 1, 13)),
        ("yyyy-MM-dd kk:mm:ss, UTC", "2026-11-21 24:00:01", utc_s(2026, 11, 21, 0, 0, 1)),
        ("''yyyy'' o''clock MM-dd HH:mm:ss, UTC", "'2026' o'clock 11-21 12:00:00", None),
        # Unknown names, impossible or unsupported dates, and ambiguous formats give None.
        ("d MMM yyyy HH:mm:ss, UTC", "1 Fév 2026 01:00:00", None),
        ("d MMM yyyy h:mm:ss a, UTC", "1 Feb 2026 1:00:00 nachm", None),
        ("yyyy-MM-dd HH:mm:ss, UTC", "2026-02-30 12:00:00", None),
        ("yyyy-MM-dd HH:mm:ss, UTC", "0001-01-01 00:00:00", None),
        ("yyyy-MM-dd HH:mm:ss", "9999-12-31 23:59:59", None),
        ("yyyy-MM-dd HH:mm, UTC", "2026-11-21 12:33", None),
        ("HH:mm:ss.SSS", "12:33:40.326", None),
        ("YYYY-MM-dd HH:mm:ss, UTC", "2026-11-21 12:33:40", None),
        ("yyyy-MM-dd HH:mm:ss.S, UTC", "2026-11-21 12:33:40.3", None),
        ("yyyy-MM-dd HH:mm:ss yyyy, UTC", "2026-11-21 12:33:40 2026", utc_s(2026, 11, 21, 12, 33, 40)),
    ],
)
def test_dates_are_parsed_in_java_formats(date_format: str, date: str, expected: float | None) -> None:
    assert seconds(date_format, date) == expected


def test_a_line_with_an_unsupported_date_format_is_parsed() -> None:
    assert parsed_line("%d{YYYY ww} - %msg%n", "2026 47 - flushed").message == "flushed"


def test_a_date_without_a_time_zone_is_local() -> None:
    with local_zone(CENTRAL_EUROPE):
        assert seconds("ISO8601", "2026-07-21 12:00:00,000") == utc_s(2026, 7, 21, 10)
    with local_zone("<-03>3"):
        assert seconds("ISO8601", "2026-07-21 12:00:00,000") == utc_s(2026, 7, 21, 15)


@pytest.mark.parametrize("summer", [0, 3600])
def test_in_the_repeated_hour_in_autumn_the_nearer_time_is_used(summer: int) -> None:
    expected_s = utc_s(2026, 10, 25, 1, 30) - summer
    with local_zone(CENTRAL_EUROPE):
        assert seconds("ISO8601", "2026-10-25 02:30:00,000", expected_s + 5) == expected_s


@given(st.integers(0, 4_000_000_000_000), st.sampled_from(["UTC", "GMT+5:30", "GMT-8", ""]))
def test_every_formatted_time_is_parsed_correctly(milliseconds: int, zone: str) -> None:
    offset = {"GMT+5:30": 19800, "GMT-8": -28800}.get(zone, 0)
    shown = datetime.fromtimestamp(milliseconds // 1000 + offset, timezone.utc).strftime("%Y-%m-%d %H:%M:%S")
    with local_zone("UTC0"):
        parsed_s = seconds(f"ISO8601, {zone}", f"{shown},{milliseconds % 1000:03}")
    # Times before 1970 in the zone's local time are not supported.
    assert parsed_s is not None or milliseconds < 86_400_000
    assert parsed_s is None or round(parsed_s * 1000) == milliseconds


@given(st.lists(st.sampled_from(BASES), min_size=1, max_size=4, unique=True), st.data())
def test_the_message_is_found_after_any_other_fields(words: list[str], data: st.DataObject) -> None:
    plain = st.text(st.characters(codec="utf-8", exclude_characters="|\n\r"), max_size=20)
    written = {
        "%-5level": st.sampled_from(LEVELS).map(lambda level: f"{level:5}"),
        "%d{ISO8601}": st.just("2026-11-21 12:33:40,326"),
        "%F:%L": st.sampled_from(["A.java:1", "?:?", "Native Method:-2"]),
        "%r": st.integers(0, 10**12).map(str),
    }
    message = data.draw(plain)
    line = "|".join([*(data.draw(written.get(word, plain)) for word in words), message])
    assert parsed_line("|".join([*words, "%msg%n"]), line).message == message.strip()


@every("pattern", [DEFAULT_PATTERN, "%t %X{a} %X{b} %c %C [%M] %d - %msg |%p %r|%n", "%30r %30L %t %30p - %msg%n"])
@every("line", [" " * 200_000, "a ] - : | " * 20_000, f"INFO  [{'] 2026-11-21 12:33:40,3' * 9000}"])
def test_no_line_takes_exponential_time_to_parse(pattern: str, line: str) -> None:
    began_s = time.thread_time()
    parse(pattern).line(line)
    # The limit is generous: a parser that tried every way to split the line would take days.
    assert time.thread_time() - began_s < 30

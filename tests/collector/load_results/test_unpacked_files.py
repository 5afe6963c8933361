"""Every format may be compressed with gzip, and lines may have the prefixes of docker compose and kubectl."""

import gzip
import os
import tempfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryFile
from types import SimpleNamespace
from typing import IO

import pytest

from collector.load_results import unpacked_files
from collector.load_results.client_format import ClientFormatError, CommandTimes, FormatChoice
from collector.load_results.client_result import ClientResult
from collector.load_results.format_registry import growing_result, read_file, recognised_format
from tests.collector.load_results.captured import CAPTURES, content_of
from tests.every import every
from tests.examples import some_of

WRK = CAPTURES / "wrk-status.log"
JMETER = CAPTURES / "jmeter.csv"
TIMES = CommandTimes(1_700_000_000.0, 1_700_000_010.0)
ANY = FormatChoice()


def result_of(path: Path, content: bytes, choice: FormatChoice = ANY) -> ClientResult:
    path.write_bytes(content)
    os.utime(path, (TIMES.end_s - 2, TIMES.end_s - 2))
    return read_file(path, choice, TIMES)


# Files that are no results, or that are refused.
OTHERS = ("jmeter-csv-statistics.json", "ab-percentiles.csv")


@pytest.mark.parametrize(
    "name",
    sorted(
        str(path.relative_to(CAPTURES)) for path in CAPTURES.rglob("*") if path.is_file() and path.name not in OTHERS
    ),
)
def test_each_capture_is_recognised_by_exactly_one_format_and_reads_the_same_when_compressed(
    tmp_path: Path, name: str
) -> None:
    content = content_of(name)
    plain, packed = result_of(tmp_path / "plain", content), gzip.compress(content, 1, mtime=0)
    # A name with another extension does not matter.
    for other in ("result.gz", "result.csv"):
        compressed = result_of(tmp_path / other, packed)
        assert compressed.source == other
        assert replace(compressed, source="plain") == plain


COPIES: Mapping[str, Callable[[bytes], bytes]] = {
    "line ends of Windows": lambda text: text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"),
    "byte order mark": lambda text: b"\xef\xbb\xbf" + text,
    "docker compose": lambda text: with_prefix(text, b"load-1  | "),
    "kubectl --timestamps": lambda text: with_prefix(text, b"2026-11-29T10:00:00.123456789Z "),
    "kubectl --prefix": lambda text: with_prefix(text, b"[pod/load-abc/load] "),
}


@every("path", some_of([path for path in sorted(CAPTURES.glob("*.*[!4]")) if path.name not in OTHERS]))
def test_each_capture_has_the_same_operations_however_it_was_copied(tmp_path: Path, path: Path) -> None:
    content = path.read_bytes()
    if len(content) < 1 << 15:
        plain = result_of(tmp_path / "file", content)
        for kind, copy in COPIES.items():
            copied = result_of(tmp_path / "file", copy(content))
            assert (kind, copied.operations) == (kind, plain.operations)


# The first line of such a file must be one of the result.
WITHOUT_OTHER_OUTPUT = ("jmeter.csv", "stress.hdr", "tlp-stress.csv", "nosqlbench-histostats.csv")


@pytest.mark.parametrize("name", ["wrk-status.log", "hey.log", "oha.json", *WITHOUT_OTHER_OUTPUT])
def test_a_result_that_follows_much_other_output_is_recognised(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpacked_files, "MAX_SEARCHED_BYTES", 1 << 17)
    content, other = content_of(name), b"load.sh: another line that has nothing to do with the result\n"
    for lines in (2_000, 5_000):
        if name in WITHOUT_OTHER_OUTPUT:
            with pytest.raises(ClientFormatError, match="unknown format"):
                result_of(tmp_path / "file", other * lines + content)
        else:
            result = result_of(tmp_path / "file", other * lines + content)
            assert result.operations == result_of(tmp_path / "file", content).operations


def with_prefix(text: bytes, prefix: bytes) -> bytes:
    return b"".join(prefix + line for line in text.splitlines(keepends=True))


def test_a_plain_file_with_the_extension_gz_is_read(tmp_path: Path) -> None:
    assert result_of(tmp_path / "wrk.gz", WRK.read_bytes()).format == "wrk"


def test_all_members_of_a_gzip_file_are_read(tmp_path: Path) -> None:
    content = JMETER.read_bytes()
    middle = content.index(b"\n", len(content) // 2) + 1
    members = gzip.compress(content[:middle]) + gzip.compress(b"") + gzip.compress(content[middle:]) + bytes(512)
    plain = result_of(tmp_path / "file", content)
    assert result_of(tmp_path / "file", members) == plain
    with_garbage = result_of(tmp_path / "file", members + b"garbage")
    assert with_garbage.notes[0] == "the gzip file is followed by other data, which is ignored"
    assert with_garbage.operations == plain.operations


def test_a_truncated_gzip_file_has_the_operations_before_its_end_and_a_note(tmp_path: Path) -> None:
    lines = [b"timeStamp,elapsed,label,success\n"]
    lines += [b"17000000%05d,%d,%s,true\n" % (number, number * 7919 % 997, b"read") for number in range(20_000)]
    compressed = gzip.compress(b"".join(lines))
    result = result_of(tmp_path / "file", compressed[: len(compressed) // 2])
    assert result.notes[0] == "the gzip file is incomplete; operations at its end are missing"
    assert result.operations[0].summary is not None
    assert 8_000 < result.operations[0].summary.completed < 12_000


def test_text_in_utf_16_is_named(tmp_path: Path) -> None:
    with pytest.raises(ClientFormatError, match=r"^text in UTF-16 \(hint: "):
        result_of(tmp_path / "file", WRK.read_text().encode("utf-16"))


def test_a_damaged_gzip_file_is_an_error(tmp_path: Path) -> None:
    compressed = bytearray(gzip.compress(JMETER.read_bytes()))
    compressed[-6] ^= 1
    with pytest.raises(ClientFormatError, match=r"^damaged gzip file: .* \(hint: "):
        result_of(tmp_path / "file", bytes(compressed))


def test_a_gzip_file_that_expands_without_limit_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacked_files, "MIN_CHECKED_BYTES", 1 << 20)
    monkeypatch.setattr(unpacked_files, "CHUNK_BYTES", 1 << 16)
    bomb = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    head = b"timeStamp,elapsed,label,success\n1700000000000,5,read,true\n"
    data = bomb.compress(head) + bomb.compress(b"\n" * (32 << 20)) + bomb.flush()
    with pytest.raises(ClientFormatError, match="expands to more than 200 times its size"):
        result_of(tmp_path / "file", data)


@pytest.mark.parametrize(("magic", "name"), [(b"\xfd7zXZ\x00", "xz"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"BZh", "bzip2")])
def test_other_compression_is_an_error_that_names_it(tmp_path: Path, magic: bytes, name: str) -> None:
    with pytest.raises(ClientFormatError, match=f"compressed with {name}"):
        result_of(tmp_path / "file", magic + b"data")


def prefixed(text: str, prefix: str) -> str:
    return "".join(prefix + line for line in text.splitlines(keepends=True))


@every(
    "prefix",
    [
        "wrk-1  | ",
        "bench_wrk_1   | ",
        "\x1b[36mwrk-1  | \x1b[0m",
        "\x1b[36mwrk-1  |\x1b[0m ",
        "wrk-1  | 2026-11-29T15:05:32.123456789Z ",
        "bench_wrk.1.x2y@host    | ",
        "wrk-1 |",
        "[wrk]      | ",
        "Nov  9 15:05:32 host-1 wrk[123]: ",
        "2026-11-29T15:05:32+0100 host-1 wrk[123]: ",
        "2026-11-29T15:05:32.123456789Z ",
        "2026-11-29T15:05:32.1+01:00 ",
        "[pod/wrk-7d9f/wrk] ",
        "[pod/wrk-7d9f/wrk] 2026-11-29T15:05:32.123456789Z ",
    ],
)
@every("capture", [WRK, JMETER])
def test_prefixes_of_container_logs_are_removed(tmp_path: Path, prefix: str, capture: Path) -> None:
    text = (
        capture.read_text(encoding="utf-8")
        if capture == WRK
        else "\n".join(
            line for line in capture.read_text(encoding="utf-8").split("\n")[:40] if line.count('"') % 2 == 0
        )
        + "\n"
    )
    plain = result_of(tmp_path / "file", text.encode())
    for content in (prefixed(text, prefix).encode(), gzip.compress(prefixed(text, prefix).encode())):
        result = result_of(tmp_path / "file", content)
        assert result.operations == plain.operations
        assert result.notes[0].startswith("the prefix '")
    named = result_of(tmp_path / "file", prefixed(text, prefix).encode(), FormatChoice(plain.format))
    assert named.operations == plain.operations


def test_only_the_lines_of_the_container_with_the_result_are_read(tmp_path: Path) -> None:
    wrk = prefixed(WRK.read_text(), "wrk-1        | ").splitlines(keepends=True)
    others = [f"cassandra-1  | INFO  line {number} | 12 requests in 3.00s\n" for number in range(30)]
    mixed = "".join(line for pair in zip(others, wrk * 2, strict=False) for line in pair)
    log = "Attaching to cassandra-1, wrk-1\n" + "".join(others[:3]) + mixed[: mixed.index("Running", 400)]
    log = log[: log.rindex("\n") + 1]
    result = result_of(tmp_path / "file", log.encode())
    plain = result_of(tmp_path / "file", WRK.read_bytes())
    assert result.operations == plain.operations
    assert "lines of other containers or without this prefix ignored" in result.notes[1]


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
def test_a_container_may_begin_to_print_long_after_others(tmp_path: Path, compress: Callable[[bytes], bytes]) -> None:
    others = "".join(f"cassandra-1  | INFO  line {number} of a long log of a node\n" for number in range(5_000))
    log = compress((others + prefixed(WRK.read_text(), "wrk-1        | ")).encode())
    result = result_of(tmp_path / "file", log)
    assert result.operations == result_of(tmp_path / "file", WRK.read_bytes()).operations
    (tmp_path / "file").write_bytes(log)
    assert recognised_format(tmp_path / "file").name == "wrk"


def test_the_results_of_several_containers_in_one_log_are_an_error(tmp_path: Path) -> None:
    log = prefixed(WRK.read_text(), "wrk-1  | ") + prefixed(WRK.read_text(), "wrk-2  | ")
    with pytest.raises(ClientFormatError, match=r"results of several containers: wrk-1, wrk-2 \(hint: "):
        result_of(tmp_path / "file", log.encode())


def test_an_unknown_log_with_prefixes_is_an_error_that_names_the_prefix(tmp_path: Path) -> None:
    log = prefixed("hello\nworld\n", "tool-1  | ")
    with pytest.raises(ClientFormatError, match=r"unknown format; lines have the prefix 'tool-1 \|' of docker compose"):
        result_of(tmp_path / "file", log.encode())


@pytest.mark.parametrize("is_compressed", [True, False])
def test_a_copy_does_not_fill_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_compressed: bool) -> None:
    log = prefixed(WRK.read_text(), "wrk-1  | ").encode()
    content = gzip.compress(WRK.read_bytes()) if is_compressed else log
    free_bytes = iter([unpacked_files.MIN_FREE_BYTES, 0])
    monkeypatch.setattr(unpacked_files, "CHECKED_BYTES", 1)
    monkeypatch.setattr(unpacked_files, "CHUNK_BYTES", 100)
    monkeypatch.setattr(os, "fstatvfs", lambda _: SimpleNamespace(f_bavail=next(free_bytes), f_frsize=1))
    with pytest.raises(ClientFormatError, match="too little disk space for a copy of the file"):
        result_of(tmp_path / "file", content)


def test_no_copy_of_a_file_remains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    log = prefixed(WRK.read_text(), "wrk-1  | ")
    result_of(tmp_path / "file", gzip.compress(log.encode()))
    assert not list(folder.iterdir())


@pytest.mark.parametrize(("stated", "folder"), [("", "/var/tmp"), ("/tmp", None)])  # noqa: S108
def test_a_copy_is_on_disk_unless_a_directory_is_stated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stated: str, folder: str | None
) -> None:
    folders = []

    def noted(**options: str | None) -> IO[bytes]:
        folders.append(options["dir"])
        return TemporaryFile(dir=tmp_path)

    monkeypatch.setenv("TMPDIR", stated)
    monkeypatch.setattr(os, "access", lambda *_: True)
    monkeypatch.setattr(tempfile, "TemporaryFile", noted)
    result_of(tmp_path / "file", gzip.compress(WRK.read_bytes()))
    assert folders == [folder]


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        (gzip.compress(JMETER.read_bytes()), "a compressed file is read only after the command has ended"),
        (
            prefixed("timeStamp,elapsed,label,success\n1700000000000,5,read,true\n", "jmeter-1  | ").encode(),
            "a log with prefixes of docker compose logs is read only after the command has ended",
        ),
    ],
)
@pytest.mark.parametrize("choice", [ANY, FormatChoice("jmeter-csv")])
def test_a_growing_file_that_is_compressed_or_has_prefixes_is_refused(
    head: bytes, reason: str, choice: FormatChoice
) -> None:
    with pytest.raises(ClientFormatError, match=reason):
        growing_result(head, choice, is_final=True)

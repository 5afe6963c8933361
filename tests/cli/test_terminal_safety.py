"""Commands never print control or bidirectional formatting characters that come from recordings."""

import csv
import io
import json
import unicodedata
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from cli.main import main
from collector.model.metric import Values
from collector.model.snapshot import Event, Scrape, Snapshot
from collector.node.catalogue import CATALOGUE
from tests.collector.merge.recorded_nodes import busy, record

UNSAFE = "".join(
    letter for letter in map(chr, range(0x3000)) if unicodedata.category(letter) in ("Cc", "Cf", "Zl", "Zp")
)
# Some outputs truncate names, so the most dangerous characters come first.
NAME = f"\x1b]52;c;ZXZpbA==\x07\x1b[2J\x9b31m\N{RIGHT-TO-LEFT OVERRIDE}\N{LANGUAGE TAG}é{UNSAFE}"

COMMANDS = (
    "journal info x",
    "journal info x --format json",
    "journal check x",
    "journal check missing",
    "replay x --wide --time --tables 5 --compactions",
    "replay x --format json --tables 5 --compactions",
    "replay x --format csv --tables 5 --compactions",
    "replay x -k none",
    "merge x -o out",
    "merge x -o out --nodes none",
    "merge x -o out --clock none=1",
    "merge x -o out --interval 0.5",
    "top --replay x --once",
    "top --replay x --once --ascii",
    "top --replay x --once --format json",
    "plot x -o out --nodes none",
)


def hostile(name: str) -> list[Snapshot]:
    """Return snapshots in which `name` replaces the names, text values and event texts that a node supplies."""
    snapshots = []
    for number, snapshot in enumerate(busy("10.0.0.1", 8)):
        (scrape,) = snapshot.scrapes
        texts: Values = {
            (metric.name,): name for metric in CATALOGUE.values() if metric.kind.value == "text" and not metric.labels
        }
        values: Values = {
            **scrape.values,
            **texts,
            ("cassandra_table_operations_total", name, name, "Read"): 100 * number,
            ("cassandra_compaction_size", "1", name, name, name): 100,
            ("cassandra_compaction_progress", "1", name, name, name): number,
            ("cassandra_compaction_pending",): 1,
        }
        problem = Scrape("nodetool", scrape.at_s, problem=name, events=(Event(name, name), Event("gc", name)))
        snapshots.append(replace(snapshot, node=name, scrapes=(replace(scrape, values=values), problem)))
    return snapshots


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that contains a hostile recording, which includes a malformed file with a hostile name."""
    folder = tmp_path_factory.mktemp("hostile")
    record(folder / "x", hostile(NAME), metrics=tuple(CATALOGUE.values()), disk=NAME, interface=NAME)
    (folder / "x" / f"{NAME[:60].replace(chr(0), '')}.jsonl.zst").write_bytes(b"\xfd\x2f\xb5 nothing")
    return folder


@pytest.mark.parametrize("command", COMMANDS)
def test_no_control_character_is_printed(
    recording: Path, command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(recording)
    with suppress(SystemExit):
        main(command.split())
    printed = capsys.readouterr()
    for text in (printed.out, printed.err):
        unsafe = {letter for letter in text if not letter.isprintable()} - {"\n"}
        # CSV rows end with CRLF.
        unsafe -= {"\r"} if "csv" in command and "\r" not in text.replace("\r\n", "") else set()
        assert not unsafe, ascii(text)
    assert printed.out or printed.err


def test_json_keeps_all_characters(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["replay", str(recording / "x"), "--format", "json", "--no-header"])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["node"] for row in rows} == {NAME}


def test_csv_replaces_unsafe_characters_and_adds_no_prefix(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    record(tmp_path / "x", [replace(snapshot, node="=1+2\x1b") for snapshot in busy("a", 3)])
    main(["replay", str(tmp_path / "x"), "--format", "csv"])
    header, *rows = csv.reader(io.StringIO(capsys.readouterr().out, newline=""))
    assert {row[header.index("node")] for row in rows} == {"=1+2?"}

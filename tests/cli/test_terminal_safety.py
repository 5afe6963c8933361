"""No command prints a character from a recording that could control a terminal or change the order of the text."""

import csv
import io
import json
import unicodedata
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from cli.main import main
from collector.catalogue import CATALOGUE
from collector.model.metric import Values
from collector.model.snapshot import Event, Scrape, Snapshot
from tests.collector.cluster.recorded_nodes import busy, record

UNSAFE = "".join(
    letter for letter in map(chr, range(0x3000)) if unicodedata.category(letter) in ("Cc", "Cf", "Zl", "Zp")
)
# Names are cut off in places, so that what does most harm comes first.
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
    """Return ticks of a node whose names, texts and events are all hostile."""
    found = []
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
        found.append(replace(snapshot, node=name, scrapes=(replace(scrape, values=values), problem)))
    return found


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a hostile recording and a file that is none, whose name is hostile too."""
    folder = tmp_path_factory.mktemp("hostile")
    record(folder / "x", hostile(NAME), metrics=tuple(CATALOGUE.values()), disk=NAME, interface=NAME)
    (folder / "x" / f"{NAME[:60].replace(chr(0), '')}.jsonl.zst").write_bytes(b"\xfd\x2f\xb5 nothing")
    return folder


@pytest.mark.parametrize("command", COMMANDS)
def test_nothing_that_controls_a_terminal_is_printed(
    recording: Path, command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(recording)
    with suppress(SystemExit):
        main(command.split())
    printed = capsys.readouterr()
    for text in (printed.out, printed.err):
        unsafe = {letter for letter in text if not letter.isprintable()} - {"\n"}
        # The end of CSV's rows.
        unsafe -= {"\r"} if "csv" in command and "\r" not in text.replace("\r\n", "") else set()
        assert not unsafe, ascii(text)
    assert printed.out or printed.err


def test_json_keeps_every_letter(recording: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["replay", str(recording / "x"), "--format", "json", "--no-header"])
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {row["node"] for row in rows} == {NAME}


def test_csv_has_a_question_mark_for_every_unsafe_letter_and_no_prefix(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    record(tmp_path / "x", [replace(each, node="=1+2\x1b") for each in busy("a", 3)])
    main(["replay", str(tmp_path / "x"), "--format", "csv"])
    header, *rows = csv.reader(io.StringIO(capsys.readouterr().out, newline=""))
    assert {row[header.index("node")] for row in rows} == {"=1+2?"}

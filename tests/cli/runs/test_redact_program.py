"""`casstat runs redact` replaces the secrets in runs and sweeps that earlier versions recorded."""

import gzip
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, cast, get_args, get_origin, get_type_hints

import pytest

from cli.main import main
from cli.runs.run_redaction import CHUNK_BYTES, _Redaction
from collector.load_results.client_result import ClientInterval, ClientResult, Operation
from collector.load_results.result_file import read_result, write_result
from collector.redaction.redactor import Redactor
from collector.runs.parameter_sweep import (
    GIVEN,
    Sweep,
    SweepRun,
    SweepSettings,
    SweptParameter,
    read_sweep,
    redacted_sweep,
    write_sweep,
)
from collector.runs.run import Run, RunCommand, RunMark
from collector.runs.run_file import read_run, redacted_run, write_run

SECRET = "geh3im!<x"  # noqa: S105
COMMAND = ("cassandra-stress", "write", "user=joe", f"password={SECRET}", "--pass", "ab1", "--token", f"{SECRET}2")


def old_run(folder: Path, name: str = "load") -> None:
    """Write a run as versions did that replaced no secrets."""
    for part in ("plots", "clients", "nodes/n1"):
        (folder / part).mkdir(parents=True)
    run = Run(
        f"{name} {SECRET}",
        1.0,
        9.0,
        "0.1.0",
        {"token": f"{SECRET}3", "size": "1"},
        command=RunCommand(COMMAND, 1.0, 9.0, 0),
        marks=(RunMark(2.0, f"with {SECRET}"),),
    )
    (folder / "run.json").write_text(json.dumps({"schema_version": 1, **asdict(run)}, indent=1))
    (folder / "report.html").write_text("<p>--password=geh3im!&lt;x --pass ab1</p>\n<p>geh3im!&lt;x3</p>")
    (folder / "report.md").write_text(f"| token | {SECRET}3 |\n")
    (folder / "command.log").write_text(f"Password: {SECRET}\nfrom a file: api_key=other1\ntotal, 1, 2\n")
    (folder / "urls.csv.gz").write_bytes(gzip.compress(f"1,GET /?token={SECRET},200\n".encode()))
    (folder / "plots/overview.gp").write_text(
        f"set terminal svg\nset output 'overview.svg'\nplot [0:1] x title 'password={SECRET}'\n"
    )
    (folder / "plots/overview.png").write_bytes(b"\x89PNG\0")
    (folder / "nodes/n1/journal").write_bytes(b"\0not examined")
    total = ClientInterval(1.0, 2.0, 5, {f"no {SECRET}": 1})
    operations = tuple(Operation(f"GET /?token={SECRET}{number}", (), total) for number in (1, 2))
    write_result(folder / f"clients/{SECRET}.csv~1.json", ClientResult("jtl", "JMeter", f"{SECRET}.csv", operations))


def contents(folder: Path) -> str:
    """Return the names and contents of all files."""
    parts = []
    for path in sorted(folder.rglob("*")):
        data = path.read_bytes() if path.is_file() else b""
        data = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
        parts.append(f"{path.relative_to(folder)}\n{data.decode(errors='replace')}")
    return "\n".join(parts)


def test_a_run_contains_no_secret_afterwards(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    old_run(folder)
    (folder / "command.log").chmod(0o640)
    assert main(["runs", "redact", str(folder)]) == 0
    printed = "".join(capfd.readouterr())
    for text in (contents(folder), printed):
        assert "geh3im" not in text
        assert "other1" not in text
    assert "command.log: 2 secrets replaced\n" in printed
    assert "run.json: " in printed
    run = read_run(folder)
    assert run.command is not None
    assert run.command.words == (
        *("cassandra-stress", "write", "user=joe", "password=REDACTED", "--pass", "REDACTED", "--token", "REDACTED"),
    )
    assert (run.tags, run.marks[0].text) == ({"token": "REDACTED", "size": "1"}, "with REDACTED")
    assert (folder / "command.log").read_text() == "Password: REDACTED\nfrom a file: api_key=REDACTED\ntotal, 1, 2\n"
    assert (folder / "command.log").stat().st_mode & 0o777 == 0o640
    (result,) = (read_result(path) for path in (folder / "clients").iterdir())
    assert [operation.name for operation in result.operations] == ["GET /?token=REDACTED", "GET /?token=REDACTED (2)"]
    # The plots are drawn again.
    assert not (folder / "plots/overview.png").exists()
    assert "password=REDACTED" in (folder / "plots/overview.svg").read_text()
    before = contents(folder)
    assert main(["runs", "redact", str(folder)]) == 0
    assert capfd.readouterr().out == "0 secrets replaced\n"
    assert contents(folder) == before


def test_a_pattern_names_other_secrets(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    old_run(folder)
    assert main(["runs", "redact", str(folder), "--redact", r"total, (\d)", "--redact", "cassandra-st"]) == 0
    assert "total, REDACTED, 2\n" in (folder / "command.log").read_text()
    run = read_run(folder)
    assert run.command is not None
    assert run.command.words[0] == "REDACTEDress"
    assert main(["runs", str(tmp_path), "--redact", "x"]) == 2
    assert main(["runs", "redact", str(tmp_path / "absent")]) == 1
    assert "not the directory of a run" in capfd.readouterr().err


def test_what_cannot_be_replaced_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / f"run-{SECRET}"
    old_run(folder)
    (folder / "data.bin").write_bytes(b"\0\1" + SECRET.encode())
    (folder / "broken.gz").write_bytes(b"\x1f\x8bxx")
    damaged = bytearray(gzip.compress(bytes(range(256)) * 100))
    damaged[20:40] = b"\xff" * 20
    (folder / "damaged.gz").write_bytes(damaged)
    assert main(["runs", "redact", str(folder)]) == 1
    errors = capfd.readouterr().err
    assert "data.bin: not text, but contains a secret" in errors
    assert "broken.gz: cannot be decompressed" in errors
    assert "damaged.gz: cannot be decompressed" in errors
    assert "the name of the directory contains a secret" in errors
    assert SECRET not in errors


def test_an_image_whose_bytes_resemble_a_setting_has_no_secret(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    old_run(folder)
    content = b"\x89PNG\0\x84n\xdb\xecPw=\xb9\xaby\xa6e\x83\n" * 100_000
    (folder / "image.png").write_bytes(content)
    assert main(["runs", "redact", str(folder)]) == 0
    assert (folder / "image.png").read_bytes() == content


@pytest.mark.parametrize("before", [0, 1, CHUNK_BYTES - 30, CHUNK_BYTES - 20, CHUNK_BYTES - 10, CHUNK_BYTES - 1])
def test_a_secret_in_a_file_that_is_not_text_is_found_wherever_it_is(
    before: int, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    old_run(folder)
    (folder / "data.bin").write_bytes(bytes(before) + b"\1password=p\xc3\xa4ssw\xc3\xb6rd-7\0")
    assert main(["runs", "redact", str(folder)]) == 1
    assert "data.bin: not text, but contains a secret" in capfd.readouterr().err


def test_the_runs_of_a_sweep_get_other_names(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    settings = SweepSettings(("load", "--password={pw}", "--n={n}"), before=("sh", "-c", f": token='{SECRET}'"))
    names = ("runs/1-pw=first-1-n=5-r1", "runs/2-pw=second-2-n=5-r1")
    parameters = (SweptParameter("pw", ("first-1", "second-2")), SweptParameter("n", ("5",)))
    runs = tuple(SweepRun(name, 1.0, 2.0) for name in names)
    sweep = Sweep("load", 1.0, "0.1.0", parameters, settings, GIVEN, 0, runs=runs)
    for name in names:
        old_run(tmp_path / name, name)
    (tmp_path / "sweep.json").write_text(json.dumps({"schema_version": 1, **asdict(sweep)}))
    (tmp_path / "results.csv").write_text("pw,n,ops_per_s\nfirst-1,5,7\nsecond-2,5,8\n")
    assert main(["runs", "redact", str(tmp_path)]) == 0
    assert capfd.readouterr().err == ""
    text = contents(tmp_path)
    assert not any(secret in text for secret in ("first-1", "second-2", "geh3im"))
    assert (tmp_path / "results.csv").read_text() == "pw,n,ops_per_s\nREDACTED-1,5,7\nREDACTED-2,5,8\n"
    redacted = read_sweep(tmp_path)
    assert [run.folder for run in redacted.runs] == ["runs/1-pw=REDACTED-1-n=5-r1", "runs/2-pw=REDACTED-2-n=5-r1"]
    assert all((tmp_path / run.folder / "run.json").is_file() for run in redacted.runs)
    assert redacted.settings.before == ("sh", "-c", ": token=REDACTED")


def test_the_files_with_commands_come_last_in_each_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Secrets are known from them: if the work is interrupted, they must still be known."""
    parameters = (SweptParameter("pw", ("first-1", "second-2")),)
    sweep = Sweep("load", 1.0, "0.1.0", parameters, SweepSettings(("load", "-p{pw}")), GIVEN, 0)
    for name in ("runs/1-pw=first-1-r1", "runs/2-pw=second-2-r1"):
        old_run(tmp_path / name, name)
        (tmp_path / name / "urls.txt").touch()
    (tmp_path / "sweep.json").write_text(json.dumps({"schema_version": 1, **asdict(sweep)}))
    order: list[Path] = []
    monkeypatch.setattr(_Redaction, "_replace_in", lambda _, path, part: order.append(path.relative_to(part)))
    assert main(["runs", "redact", str(tmp_path)]) == 0
    assert [str(after) for before, after in pairwise(order) if before.name == "run.json"] == [
        "command.log",
        "sweep.json",
    ]


@pytest.mark.parametrize("version", [1, 2])
def test_a_search_is_redacted(tmp_path: Path, version: int) -> None:
    fields: dict[str, object] = {"command": ["load", "-pw", SECRET, "{rate}"]}
    if version > 1:
        fields = {"settings": {**fields, "tags": [f"password={SECRET}"]}}
    (tmp_path / "capacity.json").write_text(json.dumps({"schema_version": version, **fields}))
    (tmp_path / "results.md").write_text(f"command: load -pw '{SECRET}'\n")
    assert main(["runs", "redact", str(tmp_path)]) == 0
    content = json.loads((tmp_path / "capacity.json").read_text())
    assert content.get("settings", content)["command"] == ["load", "-pw", "REDACTED", "{rate}"]
    assert SECRET not in contents(tmp_path)


RUN = {"schema_version": 1, "name": "r", "begin_s": 1, "end_s": 2, "casstat": "0.1.0", "nodes": []}


@pytest.mark.parametrize("file", ["run.json", "sweep.json", "capacity.json", "summary.json"])
def test_no_field_is_omitted(tmp_path: Path, file: str) -> None:
    (tmp_path / "run.json").write_text(json.dumps(RUN))
    unknown = {"note": f"curl -u joe:{SECRET}", "words": ["load", "--password", SECRET], "deep": [{"token": SECRET}]}
    (tmp_path / file).write_text(json.dumps({**RUN, **unknown, "nodes": [{"name": "n", "address": "n:1", **unknown}]}))
    assert main(["runs", "redact", str(tmp_path)]) == 0
    words = ["load", "--password", "REDACTED"]
    redacted = {"note": "curl -u joe:REDACTED", "words": words, "deep": [{"token": "REDACTED"}]}
    content = json.loads((tmp_path / file).read_text())
    assert content == {**RUN, **redacted, "nodes": [{"name": "n", "address": "n:1", **redacted}]}


def test_a_run_of_an_earlier_version_without_secrets_remains_as_it_is(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run.json").write_text(json.dumps(RUN))
    assert main(["runs", "redact", str(tmp_path)]) == 0
    assert capfd.readouterr().out == "0 secrets replaced\n"
    assert (tmp_path / "run.json").read_text() == json.dumps(RUN)


def test_a_pattern_replaces_no_syntax_in_files_of_casstat(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps({**RUN, "phases": [{"name": "pin=1", "begin_s": 1, "end_s": 2}]}))
    (tmp_path / "summary.json").write_text(json.dumps([{"name": "pin=1"}], indent=1))
    (tmp_path / "marks.jsonl").write_text(json.dumps({"time_s": 1.0, "text": "pin=1"}) + "\n")
    assert main(["runs", "redact", str(tmp_path), "--redact", "pin=.*"]) == 0
    assert read_run(tmp_path).phases[0].name == "REDACTED"
    assert json.loads((tmp_path / "summary.json").read_text()) == [{"name": "REDACTED"}]
    assert json.loads((tmp_path / "marks.jsonl").read_text()) == {"time_s": 1.0, "text": "REDACTED"}


def test_an_address_with_a_secret_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    node = {"name": "customer-42", "address": "customer-42:7000"}
    (tmp_path / "run.json").write_text(json.dumps({**RUN, "nodes": [node]}))
    assert main(["runs", "redact", str(tmp_path), "--redact", r"customer-\d+"]) == 1
    assert "run.json: a secret remains in nodes.address, nodes.name, " in capfd.readouterr().err
    # The node's recording, which does not change, has its name.
    assert [(node.name, node.address) for node in read_run(tmp_path).nodes] == [("customer-42", "customer-42:7000")]


def filled(kind: Any, text: str) -> Any:
    """Return a value of a type in which every text is `text`, and every sequence and mapping has one member."""
    if is_dataclass(kind):
        return cast(Any, kind)(**{name: filled(part, text) for name, part in get_type_hints(kind).items()})
    if (parts := [part for part in get_args(kind) if part not in (type(None), ...)]) and get_origin(kind) is Mapping:
        return {filled(parts[0], text): filled(parts[1], text)}
    if parts:
        part = filled(parts[0], text)
        return (part,) if get_origin(kind) is tuple else part
    return text if kind is str else kind(1)


@pytest.mark.parametrize("pattern", ["x1", ".+", r"[\w.]+"])
def test_the_same_texts_remain_as_in_a_new_run_or_sweep(tmp_path: Path, pattern: str) -> None:
    """casstat needs them: a field that is missing from KEPT_FIELDS would make old runs or sweeps unusable."""
    redactor = Redactor((re.compile(pattern),))
    run, sweep = filled(Run, "x1"), replace(filled(Sweep, "x1"), order=GIVEN)
    write_run(tmp_path, run)
    write_sweep(tmp_path, sweep)
    assert main(["runs", "redact", str(tmp_path), "--redact", pattern]) == 1
    assert read_run(tmp_path) == redacted_run(run, redactor)
    assert read_sweep(tmp_path) == redacted_sweep(sweep, redactor)


@pytest.mark.parametrize("pattern", [r"node\S*", "phase.*", ".+"])
def test_a_pattern_changes_no_names_of_fields(tmp_path: Path, pattern: str) -> None:
    (tmp_path / "run.json").write_text(json.dumps({**RUN, "phases": [{"name": "a", "begin_s": 1, "end_s": 2}]}))
    values = {"node_intervals_missing": 1, "nodes_missing": 2, "nodes": 3}
    (tmp_path / "summary.json").write_text(json.dumps([{"name": "a", "values": values}], indent=1) + "\n")
    main(["runs", "redact", str(tmp_path), "--redact", pattern])
    assert len(read_run(tmp_path).phases) == 1
    assert json.loads((tmp_path / "summary.json").read_text())[0]["values"] == values


def test_files_remain_where_casstat_reads_them(tmp_path: Path) -> None:
    old_run(tmp_path)
    (tmp_path / "results/h1/out").mkdir(parents=True)
    (tmp_path / "results/h1/out/run-h1.txt").touch()
    main(["runs", "redact", str(tmp_path), "--redact", "run|clients|results|h1|out"])
    assert read_run(tmp_path).end_s == 9.0
    assert len(list((tmp_path / "clients").iterdir())) == 1
    assert [path.name for path in (tmp_path / "results/h1/REDACTED").iterdir()] == ["REDACTED-REDACTED.txt"]


def test_tags_and_values_of_parameters_remain_different(tmp_path: Path) -> None:
    values = ("customer-1", "customer-2", "all"), ("1", "customer-3")
    parameters = tuple(SweptParameter(name, part) for name, part in zip(("size", "n"), values, strict=True))
    settings = SweepSettings(("load", "{size}", "{n}"))
    write_sweep(tmp_path, Sweep("load", 1.0, "0.1.0", parameters, settings, GIVEN, 0))
    (tmp_path / "run.json").write_text(json.dumps({**RUN, "tags": {"customer-4": "a", "customer-5": "b"}}))
    assert main(["runs", "redact", str(tmp_path), "--redact", r"customer-\d"]) == 0
    assert read_run(tmp_path).tags == {"REDACTED": "a", "REDACTED (2)": "b"}
    first, second = read_sweep(tmp_path).parameters
    assert (first.values, second.values) == (("REDACTED-1", "REDACTED-2", "REDACTED-3"), ("1", "REDACTED"))


def test_what_is_known_from_the_command_is_replaced_after_an_interruption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old_run(tmp_path)

    def interrupted(path: Path, *_: object) -> tuple[int, bool]:
        assert path.name == "run.json"
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("cli.runs.run_redaction.redact_document", interrupted)
        assert main(["runs", "redact", str(tmp_path)]) == 130
    assert main(["runs", "redact", str(tmp_path)]) == 0
    assert "geh3im" not in contents(tmp_path)
    assert "--pass ab1" not in contents(tmp_path)

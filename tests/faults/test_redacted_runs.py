"""What a run, a sweep and an import leave behind contains no secret, in whatever form it was given."""

import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cli.main import main
from collector.runs.parameter_sweep import read_sweep
from collector.runs.run_file import read_run
from tests.faults.recorders import recorded
from tests.faults.recording_agent import Node
from tests.faults.swept_node import swept_node

SECRET = "geh3im-pässw/rt"  # noqa: S105


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with swept_node(tmp_path / "journal") as served:
        yield served


def leaks(folder: Path, *secrets: str) -> list[str]:
    """Return the files whose names or contents contain a secret."""
    found = []
    for path in folder.rglob("*"):
        content = path.read_bytes() if path.is_file() else b""
        content = gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
        text = f"{path.relative_to(folder)}\n{content.decode(errors='replace')}"
        found += [str(path) for secret in secrets if secret in text]
    return found


def test_a_run_contains_no_secret_and_its_command_receives_it(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    monkeypatch.setenv("LOAD_TOKEN", "from-env1")
    write = 'printf "pass"; sleep .1; echo "word=fromlog1 and $1"; printf "$1" > "$CASSTAT_RUN_DIR/raw.txt"'
    mark = f'{sys.executable} -m cli mark "begins with $1"; echo "level token=marked1"; echo $LOAD_TOKEN'
    zipped = 'echo "user $1 url http://h/?token=$1" | gzip > "$CASSTAT_RUN_DIR/urls.gz"'
    script = tmp_path / "load.sh"
    script.write_text(f"{write}; {mark}; {zipped}; sleep 2; echo pin abc9\n")
    options = ("--tag", f"password={SECRET}", "--tag", "size=1", "--name", f"load {SECRET}", "--mark-regex", "level.*")
    code, out, errors = recorded(
        capfd,
        *(node.address, "-o", folder, *options, "--redact", r"pin (\w+)", "--"),
        *("sh", script, SECRET, f"--password={SECRET}"),
    )
    assert code == 0, errors
    assert f"word=fromlog1 and {SECRET}" in out
    assert leaks(folder, SECRET, "fromlog1", "from-env1", "marked1", "abc9") == []
    assert SECRET not in errors
    run = read_run(folder)
    assert run.command is not None
    assert run.command.words[2:] == ("REDACTED", "--password=REDACTED")
    assert run.tags == {"password": "REDACTED", "size": "1"}
    assert sorted(mark.text for mark in run.marks) == ["begins with REDACTED", "level token=REDACTED"]
    known = json.dumps(node.agent.known["1"])
    assert "load REDACTED" in known
    assert "geh3im" not in known
    assert (folder / "command.log").read_text().startswith("password=REDACTED and REDACTED\n")
    assert gzip.decompress((folder / "urls.gz").read_bytes()) == b"user REDACTED url http://h/?token=REDACTED\n"
    assert "--password=REDACTED" in (folder / "report.md").read_text()
    assert main(["runs", "show", str(folder)]) == 0
    assert SECRET not in capfd.readouterr().out


def test_a_sweep_over_secrets_numbers_them_and_is_resumed(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder, received = tmp_path / "sweep", tmp_path / "received"
    command = ("sh", "-c", f"echo {{pw}} $1 >> {received}; sleep 2", "load", "--password={pw}", f"--token={SECRET}")
    before = ("--before", f"sh -c ': {{pw}} --secret {SECRET}2'")

    def sweep(*options: str) -> int:
        parameters = ("-P", "pw=first-1,second-2", "-q", "--no-report", *before, *options)
        return main(["sweep", node.address, "-o", str(folder), *parameters, "--", *command])

    assert sweep() == 0
    printed = capfd.readouterr()
    assert sorted(received.read_text().split()[::2]) == ["first-1", "second-2"]
    assert leaks(folder, "first-1", "second-2", SECRET) == []
    assert not any(secret in printed.err + printed.out for secret in ("first-1", "second-2", SECRET))
    read = read_sweep(folder)
    assert read.parameters[0].values == ("REDACTED-1", "REDACTED-2")
    assert read.settings.command[4:] == ("--password={pw}", "--token=REDACTED")
    assert {path.name for path in (folder / "runs").iterdir()} == {"1-pw=REDACTED-1-r1", "2-pw=REDACTED-2-r1"}
    (folder / "runs/1-pw=REDACTED-1-r1").rename(tmp_path / "removed")
    assert sweep("--resume") == 0
    assert received.read_text().split()[-2] == "first-1"


def test_an_imported_result_contains_no_secret(node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    code, _, errors = recorded(capfd, node.address, "-q", "--no-report", "-o", folder, "--", "sleep", "2")
    assert code == 0, errors
    begin_ms = int(read_run(folder).begin_s * 1000)
    lines = ["timeStamp,elapsed,label,responseCode,responseMessage,threadName,success,Latency"]
    lines += [
        f"{begin_ms + 10 * number},5,GET /?token=tok{number % 2}en,500,key k-{number % 2}1,t 1-1,false,4"
        for number in range(100)
    ]
    results = tmp_path / "api_key=secret1.jtl"
    results.write_text("\n".join(lines) + "\n")
    assert main(["import", str(folder), str(results), "--redact", r"k-\d+"]) == 0
    assert not any(secret in "".join(capfd.readouterr()) for secret in ("tok0en", "tok1en", "secret1", "k-01"))
    assert leaks(folder, "tok0en", "tok1en", "secret1", "k-01", "k-11") == []
    (stored,) = (json.loads(path.read_text()) for path in (folder / "clients").iterdir())
    names = [operation["name"] for operation in stored["operations"]]
    assert names == ["GET /?token=REDACTED", "GET /?token=REDACTED (2)"]

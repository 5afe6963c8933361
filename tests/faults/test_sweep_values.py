"""The values of a sweep: those of the clients if there are any; otherwise the servers', unless a node is missing."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli.experiments.sweep_results import VALUES_FILE
from cli.main import main
from collector.runs.parameter_sweep import read_sweep
from collector.runs.run_file import read_run
from exporters.results.sweep.sweep_rows import NO_CLIENT_RESULT
from tests.faults.recording_agent import Node
from tests.faults.ssh_server import HOST, ssh_server
from tests.faults.swept_node import OPS_PER_S, swept_node

# Writes the samples of operations of 5 ms, at the rate in the second argument, in the form of JMeter; from a rate of 40
# on, every fourth operation fails. The rate is exact, however late the machine is.
SAMPLING = """
import sys, time
rate, begin_ms = int(sys.argv[2]), time.time() * 1000
time.sleep(2.2)
with open(sys.argv[1], "w") as file:
    print("timeStamp,elapsed,label,responseCode,success", file=file)
    for number in range(2 * rate):
        success = "false" if rate >= 40 and number % 4 == 0 else "true"
        print(f"{int(begin_ms + 1000 * number / rate)},5,read,200,{success}", file=file)
"""


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with swept_node(tmp_path / "journal") as served:
        yield served


def results(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "results.json").read_text())
    return content


def test_values_are_those_of_the_clients(node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "sweep"
    file = str(tmp_path / "samples-{rate}.jtl")
    options = ("-P", "rate=20,40", "-q", "--no-report", "--client", file, "--pause", "0.1s")
    words = (sys.executable, "-c", SAMPLING.replace("{", "{{").replace("}", "}}"), file, "{rate}")
    code = main(["sweep", node.address, "-o", str(folder), *options, "--", *words])
    assert code == 0, capfd.readouterr().err
    content = results(folder)
    assert (content["source"], content["latency"]) == ("client", "service")
    first, second = content["rows"]
    assert first["ops_per_s"] == pytest.approx(20, rel=0.03)
    assert second["ops_per_s"] == pytest.approx(30, rel=0.03)
    assert (first["p50_ms"], first["p99_ms"], first["error_share"]) == (5, 5, 0)
    assert second["error_share"] == 0.25
    assert [row["best"] for row in content["rows"]] == [True, False]
    assert first["whole_ops_per_s"] is None


def test_client_hosts_run_the_command_with_both_kinds_of_placeholders(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "sweep"
    options = ("-P", "a=7", "-q", "--no-report", "--duration", "3s", "--before", "echo before {a}")
    script = "echo a={a} {{a}} {host} {index}; sleep 60"
    with ssh_server(tmp_path / "ssh", {}) as server:
        monkeypatch.setenv("PATH", server.path)
        words = ["sweep", node.address, "-o", str(folder), "--client-host", server.url, *options]
        code = main([*words, "--", "sh", "-c", script])
    printed = capfd.readouterr()
    assert code == 0, printed.err
    assert printed.out == f"before 7\n{HOST}: a=7 {{a}} {HOST} 0\n"
    assert results(folder)["rows"][0]["ops_per_s"] == OPS_PER_S


def test_a_result_that_is_imported_later_is_used_after_the_next_resume(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "sweep"
    words = ["sweep", node.address, "-o", str(folder), "-P", "rate=20,40", "-q", "--no-report"]
    command = ["--", "sh", "-c", "sleep 3; : {rate}"]
    assert main([*words, *command]) == 0
    assert results(folder)["source"] == "server"
    assert [row["ops_per_s"] for row in results(folder)["rows"]] == [OPS_PER_S, OPS_PER_S]
    run = next(run.folder for run in read_sweep(folder).runs if "rate=40" in run.folder)
    begin_s = read_run(folder / run).begin_s
    samples = "".join(f"{1000 * (begin_s + number / 100):.0f},7,read,200,true\n" for number in range(250))
    (tmp_path / "later.jtl").write_text("timeStamp,elapsed,label,responseCode,success\n" + samples)
    assert main(["import", str(folder / run), str(tmp_path / "later.jtl")]) == 0
    assert main([*words, "--resume", *command]) == 1
    content = results(folder)
    assert content["source"] == "client"
    assert [row["problem"] for row in content["rows"]] == [NO_CLIENT_RESULT, None]
    assert (content["rows"][0]["ops_per_s"], content["rows"][1]["p50_ms"]) == (None, 7)
    # Values that cannot be read are read from the run again.
    (folder / run / VALUES_FILE).write_text("[]")
    assert main([*words, "--resume", *command]) == 1
    assert results(folder) == content
    (folder / run / VALUES_FILE).unlink()
    os.mkfifo(folder / run / VALUES_FILE)
    assert main([*words, "--resume", *command]) == 1
    assert results(folder) == content
    capfd.readouterr()


def test_the_sum_of_the_servers_is_unknown_if_a_node_is_missing(
    node: Node, tmp_path: Path, capfd: pytest.CaptureFixture[str], refusing_url: str
) -> None:
    folder = tmp_path / "sweep"
    down = refusing_url.removeprefix("http://").removesuffix("/jolokia")
    options = ("-o", str(folder), "-P", "a=1", "-q", "--no-report", "--duration", "2s")
    code = main(["sweep", node.address, down, *options, "--", "sh", "-c", "sleep 60; : {a}"])
    errors = capfd.readouterr().err
    assert code == 1
    (row,) = results(folder)["rows"]
    assert row["problem"] == f"not recorded, so the servers' throughput is unknown: http://{down}", errors
    assert row["ops_per_s"] is None

"""Jolokia and nodetool agree on a node's values, and the original casstat script's command line still works."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cli.setup.demo.demo_node import Node
from collector.node.host.discovery import disk_of
from tests.real.programs import (
    PATIENCE_S,
    Casstat,
    Load,
    Row,
    casstat,
    increase,
    load,
    nodetool,
    prepare,
    session,
    write,
)

pytestmark = pytest.mark.beside

SECONDS = 10
RATE = 300
# Rates need two reports of nodetool, which take several intervals on a busy machine.
MAX_ROWS = 100
FLUSH = " flush flushed demo.t000 "


def old_command(node: Node, events: Path) -> list[str]:
    """Return the arguments of a command line with every flag of the original casstat script."""
    disk = disk_of(node.spec.home, Path("/proc/self"))
    shown = f"-e -k demo -c t000 -o {disk} -f lo -p -s -r -j -i 2 -n {MAX_ROWS} -m {node.spec.jmx_port}"
    # Before 4.0, flushes are logged only in debug.log.
    return [*shown.split(), "-d", str(node.spec.log.with_name("debug.log")), "-l", str(events)]


def without_values(out: str) -> list[str]:
    """Return the columns that have no value in any row, except the cache columns, because the caches may be unused."""
    header, *rows = [line for line in out.splitlines() if line and not line.startswith("#")]
    names = header.replace("~", "").split()
    values = [dict(zip(names, row.partition("#")[0].split(), strict=False)) for row in rows]
    unused = ("KeyHit%", "RowHit%")
    return [name for name in names if name not in unused and all(row.get(name, "-") == "-" for row in values)]


def assert_complete(out: str) -> None:
    lines = [line for line in out.splitlines() if line and not line.startswith("#")]
    header = lines[0].replace("~", "").split()
    assert header[:5] == ["Epoch", "Rds/s", "RdLat", "Wrts/s", "WrtLat"]
    assert header[5:9] == ["KeyHit%", "RowHit%", "RdAct", "RdPnd"]
    assert header[9:14] == ["%user", "%system", "%idle", "%iowait", "%steal"]
    assert header[14].endswith("r/s")
    assert header[15:18] == ["w/s", "rMB/s", "wMB/s"]
    assert header[18].endswith("NetRxKb")
    assert header[19] == "NetTxKb"
    assert header[20:] == ["RdRep", "Rd99th", "Rd95th", "Wrt99th", "Wrt95th", "Compactions"]
    rows = [dict(zip(header, line.partition("#")[0].split(), strict=False)) for line in lines[1:]]
    assert rows[-1]["Epoch"] == "Average"
    assert without_values(out) == []
    for row in rows[:-1]:
        assert float(row["%idle"]) >= 0


@pytest.mark.parametrize("source", ["nodetool", "jolokia"])
def test_the_old_command_line_works(any_node: Node, source: str, tmp_path: Path) -> None:
    if source == "jolokia" and any_node.spec.jolokia is None:
        # The Java installation used for Cassandra 3.11 lacks the HTTP server module that Jolokia needs.
        return
    prepare(any_node)
    write(any_node)
    events = tmp_path / "events.txt"
    command = [sys.executable, "-m", "cli", *old_command(any_node, events), "--source", source]
    with (
        load(any_node, 200),
        session(any_node.spec.address) as driver,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running,
    ):
        assert running.stdout
        # Once the header and a row have been printed, the log is being followed. Averages need two rows.
        out = running.stdout.readline() + running.stdout.readline()
        # TRUNCATE flushes the table at once, without a nodetool process that would compete for the CPU.
        driver.execute("TRUNCATE demo.t000")
        out += running.stdout.readline()
        while (without_values(out) or FLUSH not in events.read_text()) and (row := running.stdout.readline()):
            out += row
        running.send_signal(signal.SIGINT)
        rest, errors = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 0, errors
    assert "Traceback" not in errors
    assert_complete(out + rest)
    assert FLUSH in events.read_text()


def source_options(node: Node) -> list[list[str]]:
    common = ["-k", "demo", "-c", "t000", "-m", str(node.spec.jmx_port), "1"]
    return [[*common, "--source", "nodetool"], [*common, "--source", "jolokia"]]


def test_both_sources_count_the_same_operations(jolokia_node: Node) -> None:
    """The load starts after the first reports and ends before the last, so both sources see all of its operations."""
    prepare(jolokia_node)
    slow, quick = source_options(jolokia_node)
    with casstat(*slow) as by_nodetool, casstat(*quick) as by_jolokia:
        for line in (by_nodetool, by_jolokia):
            line.wait_for(known)
        counted = Load(jolokia_node, RATE, SECONDS).wait()
        for line in (by_nodetool, by_jolokia):
            line.wait_for(idle_after_load)
    for line in (by_nodetool, by_jolokia):
        assert increase(line.rows, "reads_per_s") == pytest.approx(counted["reads"], rel=0.005)
        assert increase(line.rows, "writes_per_s") == pytest.approx(counted["writes"], rel=0.005)
    assert {row["percentiles"] for row in by_jolokia.rows} == {"interval"}
    assert "decayed" in {row["percentiles"] for row in by_nodetool.rows}
    # Host columns have a value every second, however slow nodetool is.
    assert all(row["cpu_idle_pct"] is not None for row in by_nodetool.rows)


def known(rows: list[Row]) -> bool:
    return bool(rows) and rows[-1]["reads_per_s"] is not None


def idle_after_load(rows: list[Row]) -> bool:
    """Return whether a rate of 0 follows a higher one."""
    rates = [row["reads_per_s"] + row["writes_per_s"] for row in rows if row["reads_per_s"] is not None]
    return any(rates) and rates[-1] == 0


def test_both_sources_agree_on_running_compactions(jolokia_node: Node) -> None:
    prepare(jolokia_node)
    slow, quick = source_options(jolokia_node)
    for _ in range(2):
        Load(jolokia_node, 400, 4, "--payload", "100000").wait()
        nodetool(jolokia_node, "flush", "demo")
    # At 1 MB/s, compacting more than 100 MB takes long enough for both sources to report it.
    nodetool(jolokia_node, "setcompactionthroughput", "1")
    compaction = subprocess.Popen([jolokia_node.spec.nodetool, "compact", "demo"], stdout=subprocess.DEVNULL)
    try:
        with casstat(*slow, "-p") as by_nodetool, casstat(*quick, "-p") as by_jolokia:
            for line in (by_nodetool, by_jolokia):
                line.wait_for(lambda rows: bool(rows) and bool(rows[-1]["compactions"]))
            assert_same_compaction(by_nodetool, by_jolokia)
    finally:
        nodetool(jolokia_node, "setcompactionthroughput", "0")
        compaction.wait(60)


def assert_same_compaction(by_nodetool: Casstat, by_jolokia: Casstat) -> None:
    slow = next(row for row in reversed(by_nodetool.rows) if row["compactions"])
    at_once = [row for row in by_jolokia.rows if abs(row["time"] - slow["time"]) <= 8 and row["compactions"]]
    assert slow["compactions_pending"] in {row["compactions_pending"] for row in at_once}
    tables = {(c["keyspace"], c["table"]) for row in at_once for c in row["compactions"]}
    assert {(c["keyspace"], c["table"]) for c in slow["compactions"]} <= tables

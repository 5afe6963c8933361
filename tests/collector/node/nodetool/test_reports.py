"""Reports from real nodes give the expected values, and other text gives no values."""

import pytest

from collector.model.metric import Kind, Value
from collector.node.catalogue import CATALOGUE
from collector.node.nodetool.reports.report import Report
from tests.collector.node.nodetool.reported import CAPTURES, SOUND, STDERR, VERSIONS, Capture, expected, flat
from tests.every import every
from tests.examples import some_of

COMMANDS = sorted({capture.command for capture in CAPTURES})
# The versions for which every report was captured.
LAB = ("3.11.19", "4.0.17", "4.1.9", "5.0.8")
GERMAN = [capture for capture in CAPTURES if ".de." in capture.file]
# Output with rounded, human-readable numbers: only gauges in bytes are read; the rest is reported as a problem.
ROUNDED = [capture for capture in SOUND if ".human." in capture.file]
DECAYED = "cassandra_table_operation_decayed_mean_seconds"


@every("capture", CAPTURES)
def test_every_capture_has_its_expected_values(capture: Capture) -> None:
    content = expected(capture.version)[capture.file]
    report = capture.original
    assert flat(report.values) == content["values"]
    assert list(report.problems) == content.get("problems", [])
    assert report.properties == content.get("properties", {})


def test_every_expected_file_is_captured() -> None:
    assert {version: set(expected(version)) for version in VERSIONS} == {
        version: {capture.file for capture in CAPTURES if capture.version == version} for version in VERSIONS
    }


@every("capture", [capture for capture in SOUND if capture not in ROUNDED])
def test_a_complete_report_has_no_problem(capture: Capture) -> None:
    assert capture.original.problems == ()
    assert capture.original.values or ".never." in capture.file


@every(
    ("version", "file", "series", "value"),
    [
        # These values were copied by hand from the captured text.
        ("3.11.19", "tablestats.one.txt", "cassandra_keyspace_operations_total|ks1|Write", 14276),
        ("3.11.19", "tablestats.one.txt", "cassandra_keyspace_operation_seconds_total|ks1|Write", 4325928),
        ("3.11.19", "tablestats.one.txt", f"{DECAYED}|ks1|t001|Read", 0.066),
        ("3.11.19", "tablestats.one.txt", "cassandra_table_compression_ratio|ks1|t001", 0.06730443668778202),
        ("4.0.17", "tablestats.one.txt", "cassandra_table_snapshots_bytes|rep_b|t1", 88873),
        ("5.0.6", "tablestats.H.txt", "cassandra_table_live_disk_bytes|ks1|t001", 102134),
        ("5.0.8", "tablestats.two.json", "cassandra_table_repaired_ratio|rep_a|never", 100.0),
        ("3.11.19", "tpstats.json", "cassandra_pool_completed_total|request|ReadStage", 4407),
        ("5.0.6", "tpstats.one-down.txt", "cassandra_pool_active|transport|Native-Transport-Requests", 7),
        ("5.0.6", "tpstats.one-down.txt", "cassandra_pool_completed_total|internal|GossipStage", 287),
        ("3.11.19", "tablehistograms.txt", "cassandra_table_operation_decayed_seconds|ks1|t001|Write|1", 1358.10),
        ("3.11.19", "tablehistograms.txt", "cassandra_table_sstables_per_read_decayed|ks1|t001|0.98", 1.0),
        ("4.1.9", "tablehistograms.txt", "cassandra_table_operation_decayed_seconds|ks1|t001|Read|0.99", 770.0),
        ("3.11.19", "proxyhistograms.txt", "cassandra_client_request_decayed_seconds|RangeSlice|0.95", 30130.99),
        ("4.1.9", "compactionstats.running.txt", "cassandra_compaction_pending_by_table|ks1|t000", 1),
        ("5.0.6", "compactionstats.running.txt", "cassandra_compaction_bytes_total", 226168),
        ("3.11.19", "info.txt", "cassandra_cache_hits_total|ChunkCache", 2088 - 1198),
        ("3.11.19", "info.txt", "cassandra_cache_bytes|ChunkCache", 2820669),
        ("4.1.9", "info.txt", "cassandra_jvm_heap_max_bytes", 512 << 20),
        ("3.11.19", "gcstats.txt", "cassandra_gcstats_total_seconds", 981),
        ("3.11.19", "netstats.txt", "cassandra_read_repairs_attempted_total", 1087),
    ],
)
def test_some_values_match_the_text(version: str, file: str, series: str, value: Value) -> None:
    assert flat(Capture(version, file).original.values)[series] == value


def test_running_compactions_have_their_progress() -> None:
    progress = "cassandra_compaction_progress"
    of_3 = flat(Capture("3.11.19", "compactionstats.running.txt").original.values)
    of_5 = flat(Capture("5.0.6", "compactionstats.running.txt").original.values)
    assert of_3[f"{progress}|e967bbe0-e575-11f1-ad52-650e3998d7fe|ks1|t000|Compaction"] == 1727266
    assert of_5[f"{progress}|863b3ec0-e575-11f1-9975-e38e87d434e0|ks1|t000|Major compaction"] == 14945285


def test_a_down_node_is_counted() -> None:
    # The second capture contains only rows, so the heading is taken from the first.
    before, later = (Capture("5.0.6", f"status.{when}.txt").text for when in ("one-down", "later"))
    report = Capture("5.0.6", "status.later.txt").parse("".join(before.splitlines(True)[:5]) + later)
    assert flat(report.values) == {"cassandra_endpoints_up": 2, "cassandra_endpoints_down": 1}
    assert report.properties["8b365887-3a15-4ea2-866f-0fa512059172"] == "127.0.0.3"
    assert report.problems == ()


def test_a_status_truncated_after_the_first_datacenter_has_no_values() -> None:
    # Split the rows of a real report between two datacenters; nodetool repeats the heading for each datacenter.
    *heading, first, second, third, end = Capture("5.0.6", "status.one-down.txt").text.splitlines(keepends=True)[:9]
    second_heading = ["Datacenter: datacenter2\n", *heading[1:]]
    capture = Capture("5.0.6", "status.one-down.txt")
    complete = capture.parse("".join((*heading, first, second, *second_heading, third.replace("UN", "DL"), end)))
    assert flat(complete.values) == {"cassandra_endpoints_up": 2, "cassandra_endpoints_down": 1}
    assert len(complete.properties) == 3
    cut = capture.parse("".join((*heading, first, second)))
    assert (cut.values, len(cut.properties)) == ({}, 2)
    assert cut.problems


def test_a_node_without_a_host_id_is_counted() -> None:
    capture = Capture("5.0.6", "status.one-down.txt")
    report = capture.parse(capture.text.replace("706c0902-70ac-4acc-8acd-5649283f41e0", f"{'null':36}"))
    assert report.values == capture.original.values
    assert len(report.properties) == 2


def test_tasks_with_other_units_or_without_a_table_are_read() -> None:
    lines = (
        "pending tasks: 0\n",
        "\n",
        "id       compaction type         keyspace table    completed total unit   progress\n",
        "e967bbfe Key cache save          system   KeyCache 10        20    keys   50.00%  \n",
        "e967bbff Anticompaction                            0         0     ranges n/a     \n",
        "e967bb00 Compaction              ks1      t001     1         3     bytes  33,33%  \n",
        "e967bb01 Compaction              ks1      t002     1         3     bytes  34.33%  \n",
        "Active compaction remaining time :        n/a\n",
    )
    report = Capture("", "compactionstats.txt").parse("".join(lines))
    prefix = "cassandra_compaction_size|e967bb"
    assert {series: value for series, value in flat(report.values).items() if "_size|" in series} == {
        f"{prefix}fe|system|KeyCache|Key cache save": 20,
        f"{prefix}ff|||Anticompaction": 0,
        f"{prefix}00|ks1|t001|Compaction": 3,
    }
    assert len(report.problems) == 1


def test_unknown_pools_are_a_problem_and_the_others_are_read() -> None:
    capture = Capture("5.0.8", "tpstats.txt")
    report = capture.parse(capture.text.replace("GossipStage", "MurmurStage"))
    assert report.problems == ("unknown thread pool (MurmurStage)",)
    assert len(capture.original.values) - len(report.values) == 5


@every("version", LAB)
@every("name", ["tpstats", "tablestats.two"])
def test_text_and_json_captured_at_the_same_moment_agree(version: str, name: str) -> None:
    json, text = (Capture(version, f"{name}.{form}").original for form in ("json", "txt"))
    assert json.values.keys() == text.values.keys()
    for series, value in json.values.items():
        if series[0] == DECAYED:
            # The mean decays even in the one second between the two commands.
            assert text.values[series] == pytest.approx(value, rel=0.1)
        elif series[0] == "cassandra_table_compression_ratio":
            assert text.values[series] == pytest.approx(value, abs=5e-6)
        else:
            assert text.values[series] == value


@every("capture", GERMAN)
def test_only_integers_are_read_from_reports_in_another_locale(capture: Capture) -> None:
    english = Capture(capture.version, capture.file.replace("tablestats.de", "tablestats.two").replace(".de.", "."))
    report = capture.original
    assert report.problems
    assert report.values.keys() < english.original.values.keys()
    assert not any(series[0].endswith("decayed_seconds") or series[0] == DECAYED for series in report.values)


@every("capture", SOUND)
def test_every_value_has_the_kind_and_labels_of_its_metric(capture: Capture) -> None:
    module = capture.module
    for series, value in capture.original.values.items():
        metric = CATALOGUE[series[0]]
        assert metric.name in module.FILLS
        assert len(series) == 1 + len(metric.labels)
        assert isinstance(value, str) == (metric.kind is Kind.TEXT)
        assert isinstance(value, int | str) or metric.kind is Kind.GAUGE


@every("command", COMMANDS)
def test_a_report_runs_the_command_that_it_is_named_after(command: str) -> None:
    module = Capture("", f"{command}.txt").module
    assert module.ARGUMENTS[0] == command
    assert {metric.name for metric in getattr(module, "METRICS", ())} <= module.FILLS


@every("command", COMMANDS)
@every(
    "text",
    [
        "",
        "\n",
        "   \n\n",
        "{}",
        "{}\n",
        "[]\n",
        "null\n",
        "{\n",
        '{"ThreadPools": {}, "total_number_of_tables": 3',
        "nodetool: Failed to connect to '127.0.0.1:7199' - ConnectException: 'Connection refused'.\n",
        "error: null\n-- StackTrace --\njava.lang.NullPointerException\n\tat org.apache.cassandra.Any.of(Any.java:1)\n",
        STDERR,
        "Usage: nodetool [options]\n",
        '{"a":' * 100_000,
        "9" * 100_000 + "\n",
    ],
)
def test_unrelated_text_gives_a_problem_and_no_values(command: str, text: str) -> None:
    report = Capture("", f"{command}.txt").parse(text)
    assert (report.values, report.properties) == ({}, {})
    assert any(problem.startswith("unrecognised report") for problem in report.problems)
    assert all(len(problem) < 200 for problem in report.problems)


@every("capture", some_of(CAPTURES))
def test_a_report_has_no_values_for_another_command(capture: Capture) -> None:
    for command in COMMANDS:
        if command != capture.command:
            assert Capture("", f"{command}.txt").parse(capture.text).values == {}


def test_a_table_without_recent_operations_has_no_percentiles() -> None:
    for version in LAB:
        assert Capture(version, "tablehistograms.never.txt").original == Report()


def test_an_index_is_not_a_table() -> None:
    for version in LAB:
        for form in ("txt", "json"):
            capture = Capture(version, f"tablestats.two.{form}")
            assert "indexed.by_v" in capture.text
            assert {series[2] for series in capture.original.values if len(series) > 2} == {
                *("Read", "Write"),
                *("big", "hits", "indexed", "never", "t1"),
            }

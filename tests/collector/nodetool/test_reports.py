"""nodetool's reports as real nodes gave them: what is understood of each, and that nothing is made of the rest."""

import pytest

from collector.catalogue import CATALOGUE
from collector.model.metric import Kind, Value
from collector.nodetool.reports.report import Report
from tests.collector.nodetool.reported import CAPTURES, SOUND, STDERR, VERSIONS, Capture, expected, flat

COMMANDS = sorted({capture.command for capture in CAPTURES})
# Of these versions there is a report of every kind.
LAB = ("3.11.19", "4.0.17", "4.1.9", "5.0.8")
GERMAN = [capture for capture in CAPTURES if ".de." in capture.file]
# Rounded on request: what is no gauge of bytes is then absent, with a reason.
ROUNDED = [capture for capture in SOUND if ".human." in capture.file]
DECAYED = "cassandra_table_operation_decayed_mean_seconds"


@pytest.mark.parametrize("capture", CAPTURES, ids=str)
def test_every_capture_has_its_expected_values(capture: Capture) -> None:
    wanted = expected(capture.version)[capture.file]
    report = capture.whole
    assert flat(report.values) == wanted["values"]
    assert list(report.problems) == wanted.get("problems", [])
    assert report.properties == wanted.get("said", {})


def test_nothing_is_expected_that_is_not_captured() -> None:
    assert {version: set(expected(version)) for version in VERSIONS} == {
        version: {capture.file for capture in CAPTURES if capture.version == version} for version in VERSIONS
    }


@pytest.mark.parametrize("capture", [each for each in SOUND if each not in ROUNDED], ids=str)
def test_a_sound_report_is_understood_without_a_problem(capture: Capture) -> None:
    assert capture.whole.problems == ()
    assert capture.whole.values or ".never." in capture.file


@pytest.mark.parametrize(
    ("version", "file", "series", "value"),
    [
        # Written down by hand, from the text.
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
def test_some_values_are_those_that_a_reader_sees(version: str, file: str, series: str, value: Value) -> None:
    assert flat(Capture(version, file).whole.values)[series] == value


def test_a_running_compaction_of_each_kind() -> None:
    progress = "cassandra_compaction_progress"
    of_3 = flat(Capture("3.11.19", "compactionstats.running.txt").whole.values)
    of_5 = flat(Capture("5.0.6", "compactionstats.running.txt").whole.values)
    assert of_3[f"{progress}|e967bbe0-e575-11f1-ad52-650e3998d7fe|ks1|t000|Compaction"] == 1727266
    assert of_5[f"{progress}|863b3ec0-e575-11f1-9975-e38e87d434e0|ks1|t000|Major compaction"] == 14945285


def test_a_cluster_with_a_node_down() -> None:
    # Of the second report only the rows were kept; its header is the first one's.
    before, later = (Capture("5.0.6", f"status.{when}.txt").text for when in ("one-down", "later"))
    report = Capture("5.0.6", "status.later.txt").parse("".join(before.splitlines(True)[:5]) + later)
    assert flat(report.values) == {"cassandra_endpoints_up": 2, "cassandra_endpoints_down": 1}
    assert report.properties["8b365887-3a15-4ea2-866f-0fa512059172"] == "127.0.0.3"
    assert report.problems == ()


def test_a_cluster_of_two_data_centres_that_is_cut_behind_the_first() -> None:
    # The rows of one real report, with the heading that nodetool repeats for each.
    *heading, first, second, third, end = Capture("5.0.6", "status.one-down.txt").text.splitlines(keepends=True)[:9]
    other = ["Datacenter: datacenter2\n", *heading[1:]]
    capture = Capture("5.0.6", "status.one-down.txt")
    whole = capture.parse("".join((*heading, first, second, *other, third.replace("UN", "DL"), end)))
    assert flat(whole.values) == {"cassandra_endpoints_up": 2, "cassandra_endpoints_down": 1}
    assert len(whole.properties) == 3
    cut = capture.parse("".join((*heading, first, second)))
    assert (cut.values, len(cut.properties)) == ({}, 2)
    assert cut.problems


def test_a_node_whose_host_id_is_not_known_counts() -> None:
    capture = Capture("5.0.6", "status.one-down.txt")
    report = capture.parse(capture.text.replace("706c0902-70ac-4acc-8acd-5649283f41e0", f"{'null':36}"))
    assert report.values == capture.whole.values
    assert len(report.properties) == 2


def test_tasks_of_other_units_and_of_no_table() -> None:
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
    where = "cassandra_compaction_size|e967bb"
    assert {series: value for series, value in flat(report.values).items() if "_size|" in series} == {
        f"{where}fe|system|KeyCache|Key cache save": 20,
        f"{where}ff|||Anticompaction": 0,
        f"{where}00|ks1|t001|Compaction": 3,
    }
    assert len(report.problems) == 1


def test_pools_that_are_not_known_are_told_and_the_rest_read() -> None:
    capture = Capture("5.0.8", "tpstats.txt")
    report = capture.parse(capture.text.replace("GossipStage", "MurmurStage"))
    assert report.problems == ("a pool that is not known, and thus its path (MurmurStage)",)
    assert len(capture.whole.values) - len(report.values) == 5


@pytest.mark.parametrize("version", LAB)
@pytest.mark.parametrize("name", ["tpstats", "tablestats.two"])
def test_text_and_json_of_one_moment_agree(version: str, name: str) -> None:
    json, text = (Capture(version, f"{name}.{form}").whole for form in ("json", "txt"))
    assert json.values.keys() == text.values.keys()
    for series, value in json.values.items():
        if series[0] == DECAYED:
            # It decays even in the second between the two calls.
            assert text.values[series] == pytest.approx(value, rel=0.1)
        elif series[0] == "cassandra_table_compression_ratio":
            assert text.values[series] == pytest.approx(value, abs=5e-6)
        else:
            assert text.values[series] == value


@pytest.mark.parametrize("capture", GERMAN, ids=str)
def test_of_another_languages_numbers_only_whole_ones_are_believed(capture: Capture) -> None:
    english = Capture(capture.version, capture.file.replace("tablestats.de", "tablestats.two").replace(".de.", "."))
    report = capture.whole
    assert report.problems
    assert report.values.keys() < english.whole.values.keys()
    assert not any(series[0].endswith("decayed_seconds") or series[0] == DECAYED for series in report.values)


@pytest.mark.parametrize("capture", SOUND, ids=str)
def test_a_sound_report_is_that_of_its_catalogue(capture: Capture) -> None:
    module = capture.module
    for series, value in capture.whole.values.items():
        metric = CATALOGUE[series[0]]
        assert metric.name in module.FILLS
        assert len(series) == 1 + len(metric.labels)
        assert isinstance(value, str) == (metric.kind is Kind.TEXT)
        assert isinstance(value, int | str) or metric.kind is Kind.GAUGE


@pytest.mark.parametrize("command", COMMANDS)
def test_a_report_is_asked_for_by_its_own_name(command: str) -> None:
    module = Capture("", f"{command}.txt").module
    assert module.ARGUMENTS[0] == command
    assert {metric.name for metric in module.METRICS} <= module.FILLS


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
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
    ids=lambda text: repr(text[:20]),
)
def test_what_is_no_report_gives_nothing_and_a_problem(command: str, text: str) -> None:
    report = Capture("", f"{command}.txt").parse(text)
    assert (report.values, report.properties) == ({}, {})
    assert any(problem.startswith("nothing of the report is understood") for problem in report.problems)
    assert all(len(problem) < 200 for problem in report.problems)


@pytest.mark.parametrize("capture", CAPTURES, ids=str)
def test_a_report_is_not_taken_for_that_of_another_command(capture: Capture) -> None:
    for command in COMMANDS:
        if command != capture.command:
            assert Capture("", f"{command}.txt").parse(capture.text).values == {}


def test_what_was_not_done_lately_has_no_percentiles() -> None:
    for version in LAB:
        assert Capture(version, "tablehistograms.never.txt").whole == Report()


def test_an_index_is_no_table() -> None:
    for version in LAB:
        for form in ("txt", "json"):
            capture = Capture(version, f"tablestats.two.{form}")
            assert "indexed.by_v" in capture.text
            assert {series[2] for series in capture.whole.values if len(series) > 2} == {
                *("Read", "Write"),
                *("big", "hits", "indexed", "never", "t1"),
            }

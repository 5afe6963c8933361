"""The responses at each of the API's paths."""

import asyncio
import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from starlette.applications import Starlette

from collector.model import sample_json
from collector.model.sample_json import decoded
from collector.model.snapshot import Sample, Snapshot, Tick
from collector.recording.header import FULL_EVERY, Header
from collector.recording.writer import Journal, Limits, files_of
from exporters.api.app import build, endpoints
from exporters.api.endpoint import TooManyChangesError
from exporters.api.journal_endpoint import File, begin_from_name, between, byte_range, files_in
from exporters.api.metrics_endpoint import OPENMETRICS, TEXT, prefers_openmetrics
from exporters.api.openapi import PATHS, description
from exporters.api.samples_endpoint import MAX_SELECTORS
from tests.every import every
from tests.exporters.api.asking import Answered, ask, request_scope
from tests.exporters.api.scripted_agent import FILES, Scripted, journal
from tests.exporters.samples import TIME_S

Ask = Callable[..., Answered]


@pytest.fixture
def agent(tmp_path: Path) -> Scripted:
    return Scripted(journal(tmp_path / "journal"))


@pytest.fixture
def get(agent: Scripted) -> Ask:
    app = build(agent, lambda: TIME_S)
    return lambda target, method="GET", body=b"", **headers: ask(app, method, target, body, **headers)


def test_the_routes_match_the_openapi_description(agent: Scripted) -> None:
    routes = {(path, method) for path, endpoint in endpoints(agent, lambda: 0.0).items() for method in endpoint.methods}
    assert routes == {(path, method.upper()) for path, operations in PATHS.items() for method in operations}
    description_json = json.dumps(description("1"))
    for name in ("schemas", "responses"):
        kept = description("1")["components"][name]
        assert all(f"#/components/{name}/{component}" in description_json for component in kept)


def test_all_errors_have_the_same_form(get: Ask) -> None:
    for answered, status in (
        (get("/nowhere"), 404),
        (get("/metrics/"), 404),
        (get("/metrics", "DELETE"), 405),
        (get("/api/v1/runs", "PUT"), 405),
        (get("/api/v1/samples?since=soon"), 400),
        (get("/api/v1/samples?since=nan"), 400),
        (get("/api/v1/journal?from=yesterday"), 400),
        (get(f"/api/v1/journal/{FILES[0]}?to=tomorrow"), 400),
        (get("/api/v1/journal/../secret.txt"), 404),
        (get("/api/v1/journal/secret.txt"), 404),
    ):
        assert answered.status == status
        assert list(answered.content) == ["error"]
        assert answered.headers["content-type"] == "application/json"
    assert get("/api/v1/runs", "PUT").headers["allow"] == "GET, HEAD, POST"


def test_the_health_response_is_one_line(get: Ask, agent: Scripted) -> None:
    assert (get("/-/healthy").status, get("/-/healthy").body) == (200, b"healthy\n")
    agent.wrong, agent.waits = "no tick\nfor 20 s", "the node does not answer"
    assert (get("/-/healthy").status, get("/-/healthy").body) == (503, b"no tick for 20 s\n")
    assert (get("/-/ready").status, get("/-/ready").body) == (503, b"the node does not answer\n")


def test_fixed_responses_have_the_expected_content(get: Ask) -> None:
    assert get("/api/v1/time").content == {"received_s": TIME_S, "sent_s": TIME_S}
    assert get("/api/v1/node").content["node"] == "10.0.0.1"
    assert get("/api/v1/openapi.json").content["openapi"] == "3.1.0"
    assert b'href="/metrics"' in get("/").body


PROMETHEUS_2 = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)


@pytest.mark.parametrize(
    ("accept", "openmetrics"),
    [
        ("", False),
        ("*/*", False),
        (PROMETHEUS_2, True),
        ("application/openmetrics-text; version=1.0.0; charset=utf-8; q=0.3, text/plain;q=0.5", False),
        ("application/openmetrics-text;version=0.0.1,text/plain;version=0.0.4;q=0.5", False),
        ("application/openmetrics-text;q=0, */*", False),
        ("application/openmetrics-text;q=x", False),
        (",;,=;q", False),
    ],
)
def test_the_exposition_format_follows_the_accept_header(get: Ask, accept: str, openmetrics: bool) -> None:
    assert prefers_openmetrics(accept) == openmetrics
    assert get("/metrics", accept=accept).headers["content-type"] == (OPENMETRICS if openmetrics else TEXT)


@pytest.mark.parametrize(
    ("header", "compressed"), [("gzip", True), ("br, gzip;q=0.5", True), ("gzip;q=0", False), ("identity", False)]
)
def test_the_exposition_is_compressed_if_the_client_accepts_gzip(get: Ask, header: str, compressed: bool) -> None:
    answered = get("/metrics", accept_encoding=header)
    assert answered.headers.get("content-encoding") == ("gzip" if compressed else None)
    assert (gzip.decompress(answered.body) if compressed else answered.body) == b"up 1\n"


def test_the_samples_since_a_time_or_the_last_sample_are_returned(get: Ask, agent: Scripted) -> None:
    assert get("/api/v1/samples").content == []
    agent.tick(first=True)
    assert get("/api/v1/samples?since=0").content == []
    agent.tick(20)
    samples = [moment.sample for moment in agent.recent.kept()]
    samples_since = [decoded(sample) for sample in get("/api/v1/samples?since=0").content]
    assert samples_since == samples
    assert [decoded(sample) for sample in get("/api/v1/samples").content] == samples[-1:]
    later = get(f"/api/v1/samples?since={agent.time_s - 2}").content
    assert [sample["tick"]["time_s"] for sample in later] == [agent.time_s - 1, agent.time_s]


def test_samples_are_filtered_by_metric(get: Ask, agent: Scripted) -> None:
    agent.tick()
    (sample,) = get("/api/v1/samples?metric=casstat_cpu_*&metric=cassandra_compaction_pendin?").content
    assert set(sample["values"]) == {"casstat_cpu_seconds_total", "cassandra_compaction_pending"}
    assert get("/api/v1/samples?metric=" + "*a" * 101).status == 400


def test_series_are_selected_by_label(get: Ask, agent: Scripted) -> None:
    agent.tick()
    (unfiltered,) = get("/api/v1/samples").content
    rows = unfiltered["values"]["casstat_cpu_seconds_total"]
    user, system, idle = (f'casstat_cpu_seconds_total{{mode="{mode}"}}' for mode in ("user", "system", "idle"))
    for selectors, modes in (
        ([user], {"user"}),
        ([user, idle, system, user], {"user", "system", "idle"}),
        (['casstat_cpu_seconds_total{mode=~"user|idle|absent"}'], {"user", "idle"}),
        ([user, "casstat_cpu_*"], {mode for mode, _ in rows}),
    ):
        query = urlencode([("metric", selector) for selector in selectors])
        (sample,) = get(f"/api/v1/samples?{query}").content
        assert sample["values"] == {"casstat_cpu_seconds_total": [row for row in rows if row[0] in modes]}
        assert sample["tick"] == unfiltered["tick"]


def test_an_invalid_selector_is_a_bad_request(get: Ask, agent: Scripted) -> None:
    agent.tick()
    for selector in ("", 'a{b="c}', 'a{b=~".*"}', r'a{b="\d"}'):
        answered = get("/api/v1/samples?" + urlencode([("metric", "up"), ("metric", selector)]))
        assert answered.status == 400
        hint = 'example: NAME{label="value",label=~"a|b"}; values of =~ are literals'
        assert answered.content == {"error": f"metric: {selector!r} is not a selector of series ({hint})"}
    too_many = urlencode([("metric", "up")] * (MAX_SELECTORS + 1))
    assert get(f"/api/v1/samples?{too_many}").status == 400
    assert get(f"/api/v1/samples?{too_many.removeprefix('metric=up&')}").status == 200


def test_a_sample_is_encoded_once(get: Ask, agent: Scripted, monkeypatch: pytest.MonkeyPatch) -> None:
    count = []

    def counted(sample: Sample) -> dict[str, Any]:
        count.append(sample)
        return {}

    monkeypatch.setattr(sample_json, "encoded", counted)
    agent.tick(3)
    for _ in range(3):
        assert len(get("/api/v1/samples?since=0").content) == 3
    assert len(count) == 3


def test_runs_can_be_begun_marked_and_ended(get: Ask, agent: Scripted) -> None:
    begun = get("/api/v1/runs", "POST", b'{"name": "ramp"}')
    assert (begun.status, begun.content["name"]) == (201, "ramp")
    assert get("/api/v1/runs/1/marks", "POST", b'{"text": "half way"}').content["marks"][0]["text"] == "half way"
    assert get("/api/v1/runs/1/end", "POST").content["end_s"] == TIME_S
    assert get("/api/v1/runs/1/end", "POST").status == 409
    assert get("/api/v1/runs/1/marks", "POST", b'{"text": "x"}').status == 409
    assert get("/api/v1/runs/2/end", "POST").status == 404
    assert [run["name"] for run in get("/api/v1/runs").content] == ["ramp"]
    agent.disk = OSError(28, "No space left on device")
    assert "No space" in get("/api/v1/runs", "POST", b'{"name": "x"}').content["error"]


def test_a_run_may_have_a_lease(get: Ask, agent: Scripted) -> None:
    assert get("/api/v1/runs", "POST", b'{"name": "ramp", "lease_s": 30}').status == 201
    assert agent.lease_s == 30
    assert get("/api/v1/runs/1/lease", "POST").content["name"] == "ramp"
    assert get("/api/v1/runs/2/lease", "POST").status == 404
    get("/api/v1/runs/1/end", "POST")
    assert get("/api/v1/runs/1/lease", "POST").status == 409
    for lease in (b"0", b"1e9", b"true", b"null", b'"30"', b"[]", b"1e999"):
        assert get("/api/v1/runs", "POST", b'{"name": "ramp", "lease_s": %s}' % lease).status == 400
    assert get("/api/v1/runs/1/marks", "POST", b'{"text": "x", "lease_s": 30}').status == 400
    assert get("/api/v1/runs/1/marks", "POST", b'{"text": "x", "": 1}').status == 400


def listed(get: Ask, target: str) -> tuple[list[str], str]:
    """Return the IDs of the runs on a page, and the URL of the next page, or "" if there is none."""
    answered = get(target)
    link = answered.headers.get("link", "")
    return [run["id"] for run in answered.content], link.removeprefix("<").partition(">")[0]


def test_runs_are_listed_in_pages(get: Ask, agent: Scripted) -> None:
    for number in range(5):
        agent.begin(f"run {number}")
    assert listed(get, "/api/v1/runs") == (["1", "2", "3", "4", "5"], "")
    assert listed(get, "/api/v1/runs?limit=5&after=nothing") == (["1", "2", "3", "4", "5"], "")
    assert listed(get, "/api/v1/runs?limit=2") == (["1", "2"], "/api/v1/runs?limit=2&after=2")
    assert listed(get, "/api/v1/runs?limit=2&after=2") == (["3", "4"], "/api/v1/runs?limit=2&after=4")
    assert listed(get, "/api/v1/runs?limit=2&after=4") == (["5"], "")
    assert listed(get, "/api/v1/runs?after=5") == ([], "")


def test_the_list_can_be_limited_to_active_runs(get: Ask, agent: Scripted) -> None:
    for number in range(5):
        agent.begin(f"run {number}")
    agent.end("2")
    assert listed(get, "/api/v1/runs?active=true") == (["1", "3", "4", "5"], "")
    first = listed(get, "/api/v1/runs?active=true&limit=2")
    assert first == (["1", "3"], "/api/v1/runs?active=true&limit=2&after=3")
    # The next page begins after run 3, although that run is no longer active.
    agent.end("3")
    assert listed(get, first[1]) == (["4", "5"], "")


@pytest.mark.parametrize("value", ["", "false", "1", "True", "true&active=no"])
def test_values_of_active_other_than_true_are_rejected(get: Ask, value: str) -> None:
    assert get(f"/api/v1/runs?active={value}").status == 400


def test_a_page_of_runs_is_bounded(get: Ask, agent: Scripted) -> None:
    for number in range(8):
        agent.begin(f"run {number}")
        agent.known[str(number + 1)]["marks"] = [{"time_s": TIME_S, "text": "\N{FIRE}" * 1000}] * 50
    page, following = listed(get, "/api/v1/runs")
    assert page == ["1", "2"]
    assert listed(get, following)[0] == ["3", "4"]
    assert len(get("/api/v1/runs").body) < 2 << 20


@pytest.mark.parametrize("limit", ["0", "-1", "1001", "99999", "1_0", "", "x", "%D9%A1"])
def test_invalid_page_sizes_are_rejected(get: Ask, limit: str) -> None:
    assert get(f"/api/v1/runs?limit={limit}").status == 400


def test_too_many_changes_get_status_429(get: Ask, agent: Scripted) -> None:
    agent.disk = TooManyChangesError("1000 changes are waiting for the next tick")
    answered = get("/api/v1/runs", "POST", b'{"name": "x"}')
    assert (answered.status, answered.headers["retry-after"]) == (429, "1")


@pytest.mark.parametrize(
    "body",
    [
        *(b"", b"[", b"[]", b"{}", b'{"name": 1}', b'{"name": ""}', b'{"name": " "}', b'{"name": "a\\nb"}', b"\xff"),
        *(b'{"name": "\\ud800"}', b'{"name": "a", "more": 1}', b'{"name": "%s"}' % (b"x" * 101), b"[" * 60000),
    ],
)
def test_invalid_names_are_rejected(get: Ask, agent: Scripted, body: bytes) -> None:
    answered = get("/api/v1/runs", "POST", body)
    assert (answered.status, agent.known) == (400, {})
    assert answered.content["error"]


def test_the_journal_lists_its_files(get: Ask, agent: Scripted) -> None:
    files = get("/api/v1/journal").content
    assert [file["name"] for file in files] == list(FILES)
    assert [file["size_bytes"] for file in files] == [256, 512, 768]
    assert files[0]["begin_s"] == 1_700_000_000.0
    assert not any(file["written"] for file in files)
    agent.tick()
    assert [file["written"] for file in get("/api/v1/journal").content] == [False, False, True]
    agent.journal = agent.journal / "none"
    assert get("/api/v1/journal").content == []


@every(
    ("from_s", "to_s", "chosen"),
    [
        (None, None, "abcd"),
        (0, 50, "d"),
        (0, 100, "abd"),
        (150, 160, "abd"),
        (199.5, 250, "bcd"),
        (201, 250, "bcd"),
        (301, None, "cd"),
        (250, 240, ""),
        (1e9, None, "d"),
        (None, 300, "abcd"),
    ],
)
def test_files_are_selected_by_time(from_s: float | None, to_s: float | None, chosen: str) -> None:
    """The clock was set back while the second file was written, and the last file has no footer."""
    times = {"a": (100.0, 199.0), "b": (50.5, 300.0), "c": (200.0, 400.0), "d": (300.0, None)}
    files = [File(name, 1, begin_s, end_s, False) for name, (begin_s, end_s) in times.items()]
    assert "".join(file.name for file in between(files, from_s, to_s)) == chosen


def test_files_are_selected_by_their_ticks_and_not_by_their_names(tmp_path: Path) -> None:
    """The clock was two hours fast until it was corrected while the second file was being written."""
    journal = Journal(tmp_path, lambda: Header("1", 1.0, "s"), Limits(file_s=600.0, sync="never"), pytest.fail)
    for time_s in (1_700_007_200.0, 1_700_007_900.0, 1_700_000_700.0, 1_700_001_300.0, 1_700_001_301.0):
        journal.append(Snapshot("n", Tick(time_s), ()))
    journal.close()
    names = [path.name for path in files_of(tmp_path)]
    files = files_in(Scripted(tmp_path))
    assert [(file.begin_s, file.end_s) for file in files] == [
        (1_700_007_200.0, 1_700_007_200.0),
        (1_700_000_700.0, 1_700_007_900.0),
    ]
    assert [file.name for file in between(files, 1_700_001_000.0, 1_700_001_400.0)] == names[1:]


@every(
    ("name", "begin_s"),
    [
        (FILES[0], 1_700_000_000.0),
        ("20231114T221320-7.jsonl.zst", 1_700_000_000.0),
        ("20231314T221320.jsonl.zst", None),
        ("mine.jsonl.zst", None),
        ("20231114T221320.jsonl.zst\n", None),
    ],
)
def test_the_start_time_is_read_from_a_file_name(name: str, begin_s: float | None) -> None:
    assert begin_from_name(name) == begin_s


@every(
    ("header", "span"),
    [
        ("", (0, 100)),
        ("bytes=0-", (0, 100)),
        ("bytes=10-19", (10, 20)),
        ("bytes=90-1000", (90, 100)),
        ("bytes=-10", (90, 100)),
        ("bytes=-1000", (0, 100)),
        ("bytes=-0", None),
        ("bytes=100-", None),
        ("bytes=20-10", (0, 100)),
        ("bytes=1-2,5-6", (0, 100)),
        ("lines=1-2", (0, 100)),
        ("bytes=-", (0, 100)),
        ("bytes=" + "9" * 30 + "-", (0, 100)),
    ],
)
def test_byte_ranges_follow_rfc_9110(header: str, span: tuple[int, int] | None) -> None:
    assert byte_range(header, 100) == span


def test_a_download_resumes_while_the_file_grows(get: Ask, agent: Scripted) -> None:
    target = f"/api/v1/journal/{FILES[0]}"
    complete = get(target)
    assert (complete.status, len(complete.body), complete.headers["accept-ranges"]) == (200, 256, "bytes")
    assert get(target, "HEAD").headers["content-length"] == "256"
    with (agent.journal / FILES[0]).open("ab") as file:
        file.write(b"more")
    rest = get(target, range="bytes=256-", if_range=complete.headers["etag"])
    assert (rest.status, rest.body, rest.headers["content-range"]) == (206, b"more", "bytes 256-259/260")
    beyond = get(target, range="bytes=260-")
    assert (beyond.status, beyond.headers["content-range"]) == (416, "bytes */260")
    changed = get(target, range="bytes=256-", if_range='"another"')
    assert (changed.status, len(changed.body)) == (200, 260)


def test_a_download_of_a_time_range_has_only_the_frames_that_may_have_its_ticks(
    get: Ask, agent: Scripted, tmp_path: Path
) -> None:
    begin_s = 1_700_000_000
    recording = Journal(tmp_path / "long", lambda: Header("1", 1.0, "s"), Limits(sync="never"), pytest.fail)
    for second in range(10 * FULL_EVERY):
        recording.append(Snapshot("n", Tick(float(begin_s + second)), ()))
    recording.close()
    (file,) = files_of(tmp_path / "long")
    whole = file.read_bytes()
    (agent.journal / file.name).write_bytes(whole)
    target = f"/api/v1/journal/{file.name}"
    assert get(target).body == whole
    within = f"{target}?from={begin_s + 5 * FULL_EVERY}&to={begin_s + 5 * FULL_EVERY + 30}"
    part = get(within)
    assert part.body in whole
    assert 0 < len(part.body) < len(whole) * 0.6
    assert part.headers["etag"] != get(target).headers["etag"]
    rest = get(within, range="bytes=100-", if_range=part.headers["etag"])
    assert (rest.status, rest.body) == (206, part.body[100:])
    assert rest.headers["content-range"] == f"bytes 100-{len(part.body) - 1}/{len(part.body)}"
    assert get(f"{target}?from={begin_s}").body == whole


@pytest.mark.parametrize(
    "name", ["secret.txt", ".lock", "20231115T011320.jsonl.zst", "..", ".", "", "a\x00b", "none.jsonl.zst"]
)
def test_only_listed_files_can_be_downloaded(get: Ask, name: str) -> None:
    assert get(f"/api/v1/journal/{name}").status == 404


def stream_statuses(app: Starlette, peers: Sequence[str]) -> list[int]:
    """Return the response statuses of simultaneous requests for event streams, one from each of `peers`."""
    statuses: list[int] = []

    async def follow(peer: str) -> None:
        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])

        async def receive() -> Any:
            # Stay connected until every request has received its status.
            while len(statuses) < len(peers):
                await asyncio.sleep(0)
            return {"type": "http.disconnect"}

        await app(request_scope("GET", "/api/v1/samples", peer, accept="text/event-stream"), receive, send)

    async def all_streams() -> None:
        await asyncio.gather(*map(follow, peers))

    asyncio.run(all_streams())
    return statuses


def test_one_client_cannot_use_all_streams(agent: Scripted) -> None:
    app = build(agent)
    assert sorted(stream_statuses(app, ["10.0.0.1"] * 32)) == [200] * 16 + [503] * 16
    assert stream_statuses(app, ["10.0.0.1"] * 16 + ["10.0.0.2"] * 16 + ["10.0.0.3"]) == [200] * 32 + [503]
    assert stream_statuses(app, ["10.0.0.1"] * 32 + ["10.0.0.2"])[-1] == 200

"""Sinks: their URLs and their points."""

import json
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.model.snapshot import Event, Identity, Rate, Sample, Tick
from exporters.sinks.parts.all_sinks import sink_of
from exporters.sinks.parts.points import part
from exporters.sinks.parts.store_http import retry_after_s
from exporters.sinks.sink import SinkUrlError
from tests.collector.snapshots import BYTES, CATALOGUE, REQUESTS
from tests.every import every
from tests.examples import examples
from tests.exporters.sinks.node_ticks import node_tick

SAMPLE = Sample("10.0.0.1", Tick(1_795_000_000.5), {REQUESTS: Rate(3.0, 2.0), BYTES: 12.5}, {}, ())
IDENTITY = Identity("prod cluster", "dc1", "", "10.0.0.1")


def error_of(url: str) -> str:
    with pytest.raises(SinkUrlError) as caught:
        sink_of(url)
    return str(caught.value)


@every(
    ("url", "cause"),
    [
        ("influx+http://h/b", "did you mean influxdb+http://?"),
        ("http://h/b", "no sink for http://"),
        ("", "no sink for this URL"),
        ("influxdb+http://u:secret@h/b", "use token_file"),
        ("influxdb+http://h:8086", "no bucket in the URL"),
        ("influxdb+http://h:8086/b?tokenfile=x", "did you mean token_file?"),
        ("influxdb+http://h:8086/b?gzip=yes", "gzip=yes: must be 0 or 1"),
        ("influxdb+http://h:8086/b?org=a&org=b", "duplicate parameter"),
        ("influxdb+http://h:99999/b", "invalid sink URL"),
        ("influxdb+http:///b", "no host or invalid port"),
        ("influxdb+http://h/b?ca_file=/x", "requires TLS"),
        ("influxdb+https://h/b?ca_file=/nowhere/ca.pem", "No such file"),
        ("influxdb+https://h/b?key_file=/x", "requires cert_file"),
        ("influxdb+http://h/b?token_file=/nowhere/token", "No such file"),
        ("graphite://h/a b", "invalid prefix"),
        ("graphite://h/a?tag=1", "did you mean tags?"),
        ("blueflood+http://h", "the URL's path is not a single tenant"),
        ("blueflood+http://h/t?ttl_s=0", "ttl_s=0: must be a whole number of seconds from 1 to 2147483647"),
        ("blueflood+http://h/t?ttl_s=2147483648", "must be a whole number of seconds from 1 to 2147483647"),
        ("graphite://node..example/a", "graphite://node..example: invalid host name"),
        (f"influxdb+http://{'a' * 64}/b", "invalid host name"),
    ],
)
def test_an_invalid_url_is_a_one_line_error(url: str, cause: str) -> None:
    message = error_of(url)
    assert cause in message
    assert "\n" not in message
    assert "secret" not in message


def test_a_token_file_readable_by_others_is_rejected(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("user:password\n")
    token.chmod(0o644)
    assert "accessible to other users" in error_of(f"influxdb+http://h/b?token_file={token}")
    token.chmod(0o600)
    sink = sink_of(f"influxdb+http://h:8086/db/autogen?token_file={token}")
    assert sink.name == "influxdb+http://h:8086/db/autogen"
    sink.close()


def test_each_sink_encodes_points_in_its_format() -> None:
    def points_of(url: str) -> list[str]:
        sink = sink_of(url)
        points = sink.encode(node_tick(CATALOGUE, IDENTITY, SAMPLE))
        assert sink.encode(node_tick(CATALOGUE, IDENTITY, SAMPLE)) == points
        sink.close()
        return [point.decode() for point in points]

    assert points_of("influxdb+http://h/b") == [
        "requests_total,cluster=prod\\ cluster,dc=dc1,node=10.0.0.1,operation=Read per_s=1.5 1795000000500000000",
        "load_bytes,cluster=prod\\ cluster,dc=dc1,node=10.0.0.1 value=12.5 1795000000500000000",
    ]
    assert points_of("graphite://h/casstat") == [
        "casstat.prod_cluster.dc1._.10_0_0_1.requests_total.Read.per_s 1.5 1795000000",
        "casstat.prod_cluster.dc1._.10_0_0_1.load_bytes.value 12.5 1795000000",
    ]
    assert points_of("graphite://h/?tags=1") == [
        "requests_total.per_s;cluster=prod_cluster;dc=dc1;node=10.0.0.1;operation=Read 1.5 1795000000",
        "load_bytes.value;cluster=prod_cluster;dc=dc1;node=10.0.0.1 12.5 1795000000",
    ]
    assert json.loads(points_of("blueflood+http://h/123?ttl_s=60")[0]) == {
        "collectionTime": 1795000000500,
        "ttlInSeconds": 60,
        "metricValue": 1.5,
        "metricName": "prod_cluster.dc1._.10_0_0_1.requests_total.Read.per_s",
    }


def test_events_become_a_point_for_annotations() -> None:
    events = (Event("restart", 'it "went"\n\\'), Event("no_answer", "still"), Event("restart", "again"))
    with closing(sink_of("influxdb+http://h/b")) as sink:
        lines = sink.encode(node_tick(CATALOGUE, IDENTITY, replace(SAMPLE, values={}, events=events)))
    tags = r"cluster=prod\ cluster,dc=dc1,node=10.0.0.1,kind=restart"
    assert lines == [
        f"casstat_events,{tags} count=2,text=\"it 'went' /; again\" 1795000000500000000".encode(),
    ]


@given(st.text(max_size=8))
@settings(max_examples=examples(100))
def test_a_part_of_a_dotted_name_has_no_dots(text: str) -> None:
    name = part(text)
    assert name
    assert name.replace("_", "").replace("-", "").isalnum() or not name.strip("_-")
    assert name.isascii()


def test_a_client_is_loaded_only_for_its_sink() -> None:
    loads = "import sys; from exporters.sinks.parts.all_sinks import sink_of; sink_of('graphite://h/p');"
    check = "sys.exit(any(name in sys.modules for name in ('influxdb_client', 'urllib3')))"
    assert subprocess.run([sys.executable, "-c", f"{loads} {check}"], check=False).returncode == 0


@every(
    ("header", "waits_s"),
    [
        ("7", 7.0),
        ("0", 0.0),
        ("99999999", 300.0),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 37.0),
        ("Sun, 06 Nov 1994 08:48:37 GMT", 0.0),
        ("soon", None),
        ("-5", None),
        ("9" * 200, None),
        (None, None),
    ],
)
def test_retry_after_is_seconds_or_a_date(header: str | None, waits_s: float | None) -> None:
    assert retry_after_s(header, 784111740.0) == waits_s

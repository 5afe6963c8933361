"""Agents are found in files of Prometheus' file_sd format and in DNS; an invalid file has a clear message."""

import json
import socket
from pathlib import Path

import pytest

from collector.agents.addresses import DiscoveryError, dns_addresses, file_addresses
from tests.every import every

GROUPS = [
    {"targets": ["10.0.0.1:17199", "10.0.0.2"], "labels": {"dc": "a"}},
    {"targets": ["db.example"], "labels": {"__scheme__": "https"}},
    {"targets": [], "labels": None},
]


def test_json_and_yaml_files(tmp_path: Path) -> None:
    expected = ["10.0.0.1:17199", "10.0.0.2", "https://db.example"]
    (tmp_path / "sd.json").write_text(json.dumps(GROUPS))
    assert file_addresses(tmp_path / "sd.json") == expected
    (tmp_path / "sd.yml").write_text(
        "- targets: ['10.0.0.1:17199', 10.0.0.2]\n  labels: {dc: a}\n"
        "- targets: [db.example]\n  labels: {__scheme__: https}\n"
    )
    assert file_addresses(tmp_path / "sd.yml") == expected


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("sd.json", "", "not a list of target groups"),
        ("sd.json", "{}", "not a list"),
        ("sd.json", '[{"labels": {}}]', "targets"),
        ("sd.json", '[{"targets": [1]}]', "not text"),
        ("sd.json", '[{"targets": "10.0.0.1"}]', "targets is not a list"),
        ("sd.json", '[{"targets": null}]', "targets is not a list"),
        ("sd.json", '["10.0.0.1"]', "not a list of target groups"),
        ("sd.json", "[" * 100_000, "not a list of target groups"),
        ("sd.yml", "a: [", "not a list of target groups"),
        ("sd.yml", "[" * 100_000, "nested too deeply"),
        ("sd.yml", "\n".join(" " * depth + "a:" for depth in range(2000)), "nested too deeply"),
        ("sd.yml", "- &a {targets: [h]}\n" + "- *a\n" * 1000, "it has an alias"),
        ("sd.json", " " * ((1 << 22) + 1), "larger than"),
    ],
)
def test_invalid_files(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(DiscoveryError) as caught:
        file_addresses(tmp_path / name)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(DiscoveryError, match="No such file"):
        file_addresses(tmp_path / "sd.json")


def test_all_addresses_of_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolved(host: str, port: int, **_: object) -> list[object]:
        assert host == "agents.default.svc"
        addresses = ["10.0.0.2", "10.0.0.1", "10.0.0.2", "fd00::1"]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in addresses]

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    assert dns_addresses("agents.default.svc") == ["10.0.0.1:17199", "10.0.0.2:17199", "[fd00::1]:17199"]
    assert dns_addresses("agents.default.svc:99")[0] == "10.0.0.1:99"


@every("name", ["host:0", "host:x", "host:99999", "no-such-name.invalid", "a" * 300, "a..b"])
def test_names_without_addresses(name: str) -> None:
    with pytest.raises(DiscoveryError):
        dns_addresses(name)

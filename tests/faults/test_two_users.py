"""Casstat as root on a machine with an adversary, the user nobody, whose processes and listeners imitate a node."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can start processes of two users")

NAMESPACES = ("unshare", "--net", "--pid", "--mount-proc", "--fork", "--kill-child")
LONG_S = 240


@pytest.fixture(scope="module")
def results() -> Iterator[dict[str, Any]]:
    # pytest's own folders are closed to other users.
    with tempfile.TemporaryDirectory() as folder:
        words = [*NAMESPACES, sys.executable, "-m", "tests.faults.two_users_stage", folder]
        done = subprocess.run(words, capture_output=True, text=True, timeout=LONG_S, check=False)
        assert done.returncode == 0, done.stderr
        yield json.loads(done.stdout)


def test_an_imitation_receives_nothing_and_runs_nothing(results: dict[str, Any]) -> None:
    for name in ("alone", "by port", "nodetool"):
        result = results["found"][name]
        assert result["received"] == ["", "", ""], name
        assert result["nodetool"] == "", name
        listing = f"process {result['pid']} of user nobody (JMX port 7199) (hint: to read one, name its address with"
        assert listing in result["errors"], name


def test_a_trusted_or_named_user_receives_the_credentials(results: dict[str, Any]) -> None:
    for name in ("trusted", "named"):
        result = results["found"][name]
        assert "Authorization: Basic" in result["received"][0], name
        assert result["received"][1:] == ["", ""], name


def test_an_older_imitation_neither_hides_nor_replaces_the_node(results: dict[str, Any]) -> None:
    result = results["beside"]["real"]
    assert result["posts"] > 0
    assert result["received"] == ""
    assert "no answer" not in result["errors"]


def test_a_squatter_of_the_default_port_receives_nothing(results: dict[str, Any]) -> None:
    result = results["beside"]["squatted"]
    assert result["received"] == ""
    assert "http://127.0.0.1:8778/jolokia: not trusted: it belongs to user nobody, not to root" in result["errors"]


def test_a_squatter_of_the_agents_port_receives_nothing(results: dict[str, Any]) -> None:
    result = results["recorded"]
    assert result["received"] == ""
    assert "ignoring the agent at 127.0.0.1:17199, which belongs to user nobody" in result["errors"]


def test_nodetool_runs_as_the_nodes_user_who_alone_reads_the_password(results: dict[str, Any]) -> None:
    lines = set(results["programs"]["log"].splitlines())
    assert lines == {"65534 65534 65534 me secret-of-jmx "}


def test_nodetool_that_others_can_replace_is_not_run(results: dict[str, Any]) -> None:
    assert "other users can write to" in results["programs"]["writable"]
    assert "other users can write to" in results["programs"]["configuration"]
    assert "belongs to another user" in results["programs"]["foreign"]
    for name in ("writable", "configuration", "foreign"):
        assert "secret-of" not in results["programs"][name]

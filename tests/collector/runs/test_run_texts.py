"""A run's name is acceptable to agents, whatever it is derived from."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.runs.run import MAX_NAME_CHARS, accepted_name, command_name, require_accepted
from tests.every import every


@every(
    ("text", "name"),
    [("load.sh", "load.sh"), ("", "run"), (" \t", "run"), ("a\tb", "a b"), ("\udcff", "?"), ("x" * 101, "x" * 100)],
)
def test_a_name_is_derived_from_any_text(text: str, name: str) -> None:
    assert accepted_name(text) == name


@given(st.text() | st.text("x \t", min_size=90, max_size=220))
def test_a_derived_name_is_accepted(text: str) -> None:
    require_accepted("name", accepted_name(text), MAX_NAME_CHARS)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("cassandra-stress write n=1000", "cassandra-stress"),
        ("/opt/cassandra/tools/bin/cassandra-stress write", "cassandra-stress"),
        ("./load.sh --fast", "load.sh"),
        ("bash load.sh", "load.sh"),
        ("/bin/bash -eu -o pipefail ./bench/load.sh 10", "load.sh"),
        ("sh -c './load.sh | tee log'", "load.sh"),
        ("bash -lc 'PASSWORD=x exec k6 run script.js'", "k6"),
        ("sh -c 'for i in 1 2; do true; done'", "sh"),
        ("sh -c 'it is \"broken'", "sh"),
        ("bash", "bash"),
        ("bash -s", "bash"),
        ("python3.11 -u load.py", "load.py"),
        ("python3 -m locust -f x.py", "locust"),
        ("python3 -c 'import time'", "python3"),
        ("java -Xmx1g -cp a.jar site.ycsb.Client -t", "site.ycsb.Client"),
        ("java -jar /opt/nb5.jar run", "nb5.jar"),
        ("env A=1 B=2 timeout -s INT 60 nice -n 5 taskset -c 0,1 bash load.sh", "load.sh"),
        ("time -f %e ./load.sh", "load.sh"),
        ("timeout 60", "timeout"),
        ("casstat demo load --rate 5", "casstat demo load"),
        ("python -m pkg", "pkg"),
        ("env A=b tool", "tool"),
        ("docker run img", "img"),
        ("docker run --rm -it -v /x:/y --network=host -e A=b registry:5000/grafana/k6:1.2@sha256:0 run s.js", "k6"),
        ("sudo docker exec -i -w /tmp client bash load.sh", "load.sh"),
        ("docker run", "docker"),
        ("docker exec client", "docker"),
    ],
)
def test_a_run_has_the_name_of_the_script_or_program_that_makes_the_load(command: str, name: str) -> None:
    assert command_name(shlex.split(command)) == name

"""Runs for tests: an example, and a strategy that generates others."""

from hypothesis import strategies as st

from collector.redaction.secret_forms import is_secret_name
from collector.runs.run import ClientHost, NodeClock, Run, RunCommand, RunCondition, RunMark, RunNode, RunPhase

NODE = RunNode(
    "10.0.0.1",
    "http://10.0.0.1:17199",
    "nodes/10.0.0.1",
    60,
    1_700_000_000.0,
    1_700_000_059.0,
    1.0,
    "0.1.0",
    (NodeClock(1_700_000_060.5, 0.25, 0.001), NodeClock(1_700_000_090.5, 0.27, 0.002)),
)
RUN = Run("r1", 1_699_999_999.5, 1_700_000_060.0, "0.1.0", {"size": "large"}, (NODE, RunNode("", "h", problem="down")))
TEXTS, NUMBERS = st.text(max_size=10), st.floats(-1e11, 1e11)
OFFSETS = st.floats(-4e9, 4e9)
NODES = st.builds(
    RunNode,
    TEXTS,
    TEXTS,
    st.sampled_from(["", "nodes/a", "nodes/fe80::1%25eth0"]),
    st.integers(0, 1 << 40),
    st.none() | NUMBERS,
    st.none() | NUMBERS,
    st.none() | NUMBERS,
    TEXTS,
    st.lists(st.builds(NodeClock, NUMBERS, OFFSETS, NUMBERS), max_size=2).map(tuple),
    TEXTS,
    st.sampled_from(["", ".agents/1"]),
)
CLIENT_HOSTS = st.builds(
    lambda node, code, results: ClientHost(**vars(node), exit_code=code, results=results),
    NODES,
    st.none() | st.integers(0, 255),
    st.sampled_from(["", "results/0-c1"]),
)
RUNS = st.builds(
    Run,
    TEXTS,
    NUMBERS,
    st.none() | NUMBERS,
    TEXTS,
    # The values of secret tags are not written.
    st.dictionaries(TEXTS.filter(lambda key: not is_secret_name(key)), TEXTS, max_size=2),
    st.lists(NODES, max_size=2).map(tuple),
    st.none()
    | st.builds(
        RunCommand,
        st.lists(TEXTS, max_size=3).map(tuple),
        NUMBERS,
        st.none() | NUMBERS,
        st.none() | st.integers(0, 255),
        st.none() | NUMBERS,
        st.booleans(),
    ),
    st.lists(st.builds(RunPhase, TEXTS, NUMBERS, NUMBERS, st.booleans()), max_size=2).map(tuple),
    st.lists(st.builds(RunMark, NUMBERS, TEXTS), max_size=2).map(tuple),
    st.lists(TEXTS, max_size=2).map(tuple),
    NUMBERS,
    st.lists(CLIENT_HOSTS, max_size=2).map(tuple),
    st.lists(
        st.builds(RunCondition, TEXTS, st.none() | st.booleans(), st.lists(TEXTS, max_size=2).map(tuple)), max_size=2
    ).map(tuple),
)

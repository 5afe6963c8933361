"""Generated snapshots in which series appear and disappear, counters decrease and histograms change length."""

from hypothesis import strategies as st

from collector.model.metric import Series, Value
from collector.model.snapshot import Event, Scrape, Snapshot, Tick, with_rounded_times

TEXTS = st.text(max_size=8)
SERIES = st.tuples(st.sampled_from(["a_total", "b_bytes", "c_seconds", "d"]), st.sampled_from(["", "x", 'ü\n"']))
BUCKETS = st.lists(st.integers(0, 1 << 62), max_size=6).map(tuple)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
VALUES: st.SearchStrategy[Value] = st.one_of(st.integers(-(1 << 70), 1 << 70), FLOATS, TEXTS, BUCKETS)
EVENTS = st.builds(Event, TEXTS, TEXTS, st.none() | st.floats(0, 1e11))
SECONDS = st.floats(0, 1e9)


def scrapes(source: str) -> st.SearchStrategy[Scrape]:
    series: st.SearchStrategy[Series] = SERIES
    return st.builds(
        Scrape,
        st.just(source),
        SECONDS,
        st.dictionaries(series, VALUES, max_size=6),
        TEXTS,
        TEXTS,
        st.lists(EVENTS, max_size=2).map(tuple),
        SECONDS,
        SECONDS,
    )


SNAPSHOTS = st.builds(
    Snapshot,
    st.sampled_from(["10.0.0.1", "node\t1"]),
    st.builds(Tick, st.floats(0, 1e11), SECONDS, st.integers(0, 1000), st.just(0.0) | SECONDS),
    st.tuples(scrapes("cpu"), scrapes("cassandra")) | st.tuples(scrapes("cpu")) | st.just(()),
).map(with_rounded_times)

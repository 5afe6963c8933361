"""The settings of a node that its recording contains: versions, location and transport."""

from collections.abc import Mapping
from dataclasses import dataclass

from collector.cluster.merge_job import NodeRun
from collector.model.identity import IDENTITY_LABELS
from collector.model.metric import Series

SERIES: Mapping[Series, str] = {
    ("cassandra_release_version",): "cassandra",
    ("cassandra_schema_version",): "schema",
    **IDENTITY_LABELS,
}
"""Maps each series that contains a setting to the setting's name in `NodeSettings`."""


@dataclass(frozen=True)
class NodeSettings:
    """The settings of a node; "" for one that is unknown.

    cassandra  the version of Cassandra.
    schema     the version of the schema, which changes with every change of the schema.
    transport  how the node was read, such as "jolokia".
    """

    cassandra: str = ""
    schema: str = ""
    cluster: str = ""
    dc: str = ""
    rack: str = ""
    transport: str = ""


def settings_of(run: NodeRun) -> NodeSettings:
    """Return a node's last known settings in its intervals.

    A short run may contain no reading of a setting, because versions and locations are read only once a minute. Its
    recording begins earlier than the run, or with the first tick, which belongs to no interval.
    """
    values = _settings_in(run.outside)
    for interval in run.intervals.values():
        values |= _settings_in(interval.sample.values)
    return NodeSettings(**values, transport=run.head.way)


def _settings_in(values: Mapping[Series, object]) -> dict[str, str]:
    return {name: str(values[series]) for series, name in SERIES.items() if series in values}

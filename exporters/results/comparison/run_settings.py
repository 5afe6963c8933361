"""The settings of a run and of its cluster: one table for the report of a run and the comparison of runs."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from shlex import join

from collector.merge.node_settings import NodeSettings
from collector.printable import count_text, excerpts, names_text, single_line
from collector.runs.run import Run

_SHOWN_NODES = 3
_MAX_CHARS = 70
"""The length of a value in a warning about a difference."""


@dataclass(frozen=True)
class RunSettings:
    """A run's metadata, and the settings of its recorded nodes by the node's name."""

    run: Run
    nodes: Mapping[str, NodeSettings] = field(default_factory=dict)


@dataclass(frozen=True)
class Setting:
    """A setting.

    name         as in a sentence, without an article.
    value        returns the setting as text; "" if it is unknown.
    is_decisive  whether runs in which it differs are not comparable.
    is_compared  whether a difference is stated; data grows with each run.
    """

    name: str
    value: Callable[[RunSettings], str]
    is_decisive: bool = False
    is_compared: bool = True


def _of_nodes(name: str) -> Callable[[RunSettings], str]:
    """Return a function that lists the nodes' known values of a setting."""
    return lambda settings: _list(getattr(node, name) for node in settings.nodes.values())


def _by_node(name: str) -> Callable[[RunSettings], str]:
    """Return a function that lists the nodes' known values of a setting, with the nodes if they differ."""

    def value(settings: RunSettings) -> str:
        nodes: dict[str, list[str]] = {}
        for node, known in settings.nodes.items():
            if text := getattr(known, name):
                nodes.setdefault(text, []).append(node)
        if len(nodes) < 2:
            return "".join(nodes)
        return "; ".join(f"{text} ({names_text(sorted(names), _SHOWN_NODES)})" for text, names in sorted(nodes.items()))

    return value


def _list(values: Iterable[str]) -> str:
    return ", ".join(sorted(set(filter(None, values))))


def _number_of_nodes(settings: RunSettings) -> str:
    return str(sum(bool(node.folder) for node in settings.run.nodes))


def _racks(settings: RunSettings) -> str:
    """Return the number of nodes in each rack; "" unless every node's rack is known."""
    racks = Counter(f"{node.dc}/{node.rack}" if node.dc and node.rack else "" for node in settings.nodes.values())
    return "" if "" in racks else ", ".join(f"{rack}: {count_text(racks[rack], 'node')}" for rack in sorted(racks))


def _casstat(settings: RunSettings) -> str:
    return _list(node.casstat for node in settings.run.nodes) or settings.run.casstat


def _intervals(settings: RunSettings) -> str:
    lengths_s = {node.interval_s for node in settings.run.nodes if node.interval_s is not None}
    return ", ".join(f"{length_s:g} s" for length_s in sorted(lengths_s))


def _command(settings: RunSettings) -> str:
    return join(settings.run.command.words) if settings.run.command else "none"


SETTINGS = (
    Setting("Cassandra version", _of_nodes("cassandra"), is_decisive=True),
    Setting("schema version", _of_nodes("schema"), is_decisive=True),
    Setting("number of nodes", _number_of_nodes, is_decisive=True),
    Setting("distribution over racks", _racks, is_decisive=True),
    Setting("cluster name", _of_nodes("cluster")),
    Setting("casstat version", _casstat),
    Setting("source", _of_nodes("transport")),
    Setting("interval", _intervals),
    Setting("processors", _by_node("processors")),
    Setting("memory", _by_node("memory")),
    Setting("kernel", _by_node("kernel")),
    Setting("disk model", _by_node("disks")),
    Setting("JVM", _by_node("jvm")),
    Setting("heap", _by_node("heap")),
    Setting("garbage collectors", _by_node("collectors")),
    Setting("replication", _by_node("replication")),
    Setting("consistency", _by_node("consistency")),
    Setting("compaction", _by_node("compaction")),
    Setting("data size", _by_node("data"), is_compared=False),
    Setting("command", _command),
)


def settings_texts(settings: RunSettings) -> dict[str, str]:
    """Return the known settings of a run by name."""
    return {setting.name: text for setting in SETTINGS if (text := setting.value(settings))}


@dataclass(frozen=True)
class SettingPair:
    """A setting's values in two groups of runs; "" for one that is unknown."""

    setting: Setting
    a: str
    b: str

    @property
    def is_known(self) -> bool:
        return bool(self.a and self.b)

    @property
    def is_different(self) -> bool:
        """Whether both values are known and differ."""
        return self.is_known and self.setting.is_compared and self.a != self.b


def setting_pairs(a: Sequence[RunSettings], b: Sequence[RunSettings]) -> Iterator[SettingPair]:
    """Yield every setting with its values in two groups of runs."""
    for setting in SETTINGS:
        first, second = ("; ".join(sorted({setting.value(run) for run in side} - {""})) for side in (a, b))
        yield SettingPair(setting, first, second)


def differing_settings(a: Sequence[RunSettings], b: Sequence[RunSettings]) -> Iterator[str]:
    """Yield a warning for each setting that differs between the groups."""
    for pair in setting_pairs(a, b):
        if pair.is_different:
            first, second = excerpts(single_line(pair.a), single_line(pair.b), _MAX_CHARS)
            degree = "not comparable" if pair.setting.is_decisive else "possibly not comparable"
            yield f"{degree}: the {pair.setting.name} is {first} in A and {second} in B"

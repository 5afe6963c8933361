"""What the agent knows of itself, for everybody who asks: it takes every tick, and hands it on."""

from collections.abc import Callable
from pathlib import Path

from cli.agent.runs import Runs
from cli.agent.settings import AgentSettings
from collector.clock import Clock
from collector.journal.writing import Journal
from collector.model import Sample, Snapshot
from collector.watch import Watch
from exporters.recent import Recent

# A tick that is so much later than it should be will not come any more; in ticks, and at least so many seconds.
STALLED_TICKS, STALLED_S = 3, 10.0
# A node that answers at its own pace may take so long.
PACED_S = 120.0


class Agent:
    """The agent as its API and its parts see it."""

    def __init__(
        self, settings: AgentSettings, folder: Path, runs: Runs, clock: Clock, say: Callable[[str], None]
    ) -> None:
        self.recent = Recent()
        self.journal = folder
        self._settings = settings
        self._runs = runs
        self._clock = clock
        self._say = say
        self._watch: Watch | None = None
        self._ticked_s = clock.monotonic_s()
        self._answered_s: float | None = None

    def tick(self, watch: Watch, snapshot: Snapshot, sample: Sample | None, journal: Journal) -> None:
        """Take a tick."""
        own = set(watch.node_sources)
        self._watch, self._ticked_s = watch, self._clock.monotonic_s()
        if any(batch.source in own and batch.values for batch in snapshot.batches):
            self._answered_s = self._ticked_s
        self.recent.add(snapshot, sample, journal.position)

    def answers(self) -> bool:
        """Return whether the node answers, as far as its pace tells."""
        paced = self._watch is not None and self._watch.paced
        patience_s = max(STALLED_TICKS * self._settings.interval, PACED_S if paced else 0.0)
        return self._answered_s is not None and self._clock.monotonic_s() - self._answered_s <= patience_s

    def status(self) -> str:
        """Return in a line how things are."""
        node = self._watch.node if self._watch else "-"
        return f"{node}: {'answers' if self.answers() else 'no answer'}"

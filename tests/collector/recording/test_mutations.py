"""Random changes to recordings; `make acceptance-journal-mutations` tests many more."""

import random
import shutil
from pathlib import Path

import pytest

from tests.collector.merge.recorded_nodes import BEGIN_S, busy, record
from tests.collector.recording.mutated import MUTATIONS, Truth, mutate, truth_of, verdict

SEEDS = 4


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Truth]:
    """A recording of three sessions; the last one ends as if its recorder had been killed."""
    folder = tmp_path_factory.mktemp("recorded") / "a"
    for number, ticks in enumerate((14, 9, 7)):
        snapshots = busy("a", ticks, begin_s=BEGIN_S + 100 * number, origin=f"start {number}")
        record(folder, snapshots, full_every=4, session=f"session {number}")
    killed = sorted(folder.glob("*.zst"))[-1]
    content = killed.read_bytes()
    killed.write_bytes(content[: content.rindex(b"\x28\xb5\x2f\xfd")])
    return folder, truth_of(folder)


@pytest.mark.parametrize("kind", MUTATIONS)
def test_totals_are_right_or_lost_ticks_are_reported(kind: str, recorded: tuple[Path, Truth], tmp_path: Path) -> None:
    original, truth = recorded
    for seed in range(SEEDS):
        folder = tmp_path / str(seed) / "a"
        shutil.copytree(original, folder)
        chance = random.Random(seed)  # noqa: S311 - not for secrets
        mutate(chance, folder, [kind])
        assert verdict(truth, folder, by_all=seed == 3).wrong == "", seed

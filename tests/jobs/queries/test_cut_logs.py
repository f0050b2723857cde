"""Logs of which parts are gone: what is said of a group is right, or null; nothing right is called wrong."""

import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from coordinator_core.groups.certainty import LogGaps
from coordinator_core.groups.describe import POSSIBLY_THERE, group_state
from coordinator_core.groups.group import Group
from coordinator_core.groups.proven_state import GroupKeys, prove
from tests.commands import rows_of_command
from tests.core.builders import GroupLog
from tests.core.certainties import ABOUT_CERTAINTY
from tests.jobs.logs import batches
from tests.shared_data import ROOT

SAMPLES = ROOT / "data" / "samples" / "logs"
TOPIC = "__consumer_offsets"
Damage = Callable[[Path, random.Random], None]
LISTS = ("members", "offsets", "offsets_stable", "share_offsets")
"""Of these the log may have a part only: what it has is right."""


@pytest.fixture(scope="module")
def truth() -> dict[str, dict[str, Any]]:
    return {each["group"]: each for each in rows_of_command("describe", "--all", "--log", SAMPLES)}


def with_records(folder: Path) -> list[Path]:
    """The partitions of the log of groups that are not empty."""
    return [each for each in sorted(folder.glob(f"{TOPIC}-*")) if any(file.stat().st_size for file in each.iterdir())]


def without_beginning(folder: Path, rng: random.Random) -> None:
    """Every partition begins somewhere in the middle, in a segment named after its first offset."""
    for partition in with_records(folder):
        segments = sorted(partition.glob("*.log"))
        kept = rng.randrange(len(segments))
        for gone in segments[:kept]:
            gone.unlink()
        found = list(batches(segments[kept].read_bytes()))
        rest = found[rng.randrange(1, len(found)) :]
        segments[kept].unlink()
        (partition / f"{rest[0][0]:020}.log").write_bytes(b"".join(batch for _, batch in rest))


def with_flipped_bits(folder: Path, rng: random.Random) -> None:
    """A batch in each partition of groups, and one of the topics, has a checksum that does not fit."""
    for partition in (*with_records(folder), folder / "__cluster_metadata-0"):
        segment = rng.choice(sorted(partition.glob("*.log")))
        data = bytearray(segment.read_bytes())
        base = rng.choice(list(batches(bytes(data))))[1]
        at = bytes(data).index(base) + rng.randrange(61, len(base))
        data[at] ^= 1 << rng.randrange(8)
        segment.write_bytes(bytes(data))


@pytest.fixture(params=range(4))
def seed(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    shutil.copytree(SAMPLES, tmp_path / "logs")
    return tmp_path / "logs"


def untrue(said: Any, true: Any, path: str = "") -> Iterator[str]:
    """Where what is said is neither null nor true; of lists of what was seen, each entry counts."""
    if said is None:
        return
    if isinstance(said, dict) and isinstance(true, dict):
        for name, value in said.items():
            if name in ABOUT_CERTAINTY:
                continue
            if name in LISTS and isinstance(value, list):
                known = {each.get("consumerId") or each.get("memberId"): each for each in true[name]}
                for each in value:
                    member = each.get("consumerId") or each.get("memberId")
                    yield from untrue(each, known.get(member, f"no member {member}"), f"{path}.{name}")
            else:
                yield from untrue(value, true.get(name, "nothing"), f"{path}.{name}")
    elif said != true:
        yield f"{path}: {said} is said, {true} is true"


@pytest.mark.parametrize("damage", [without_beginning, with_flipped_bits])
def test_what_is_said_of_a_group_is_true_or_null(
    logs: Path, damage: Damage, seed: int, truth: dict[str, dict[str, Any]]
) -> None:
    damage(logs, random.Random(seed))
    described = rows_of_command("describe", "--all", "--log", logs)
    assert described
    there = [each for each in described if each["certainty"] != POSSIBLY_THERE]
    wrong = [f"{each['group']}{where}" for each in there for where in untrue(each, truth[each["group"]])]
    assert wrong == []


@pytest.mark.parametrize("damage", [without_beginning, with_flipped_bits])
def test_nothing_right_is_called_wrong(logs: Path, damage: Damage, seed: int) -> None:
    damage(logs, random.Random(seed))
    found = rows_of_command("audit", "--log", logs)
    assert [each for each in found if each["table"] == "violations"] == []
    assert {each["verdict"] for each in found} <= {"identical", "unknown"}


@pytest.mark.parametrize(("lost", "state"), [(-1, "EMPTY"), (9, None)])
def test_a_group_whose_end_is_lost_has_no_state(lost: int, state: str | None) -> None:
    group, keys, log = Group("g", from_start=True), GroupKeys(), GroupLog()
    for record in (*log.join("m1", 2, {"t": [0]}), *log.gone("m1"), log.epoch(3)):
        group.apply(record)
        keys.note(record, group)
    proven, certainty = prove(group, keys, LogGaps(missing=lost, lost=lost))
    assert group_state(proven, certainty) == state

"""Copies of the samples, each damaged in one way or in all of them, and what files and tables answer about them."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

from coordinator_core.assignors.inputs import AssignedGroupType
from coordinator_core.audit.explain import explain
from coordinator_core.audit.rows import Verdict
from coordinator_core.audit.whatif.replay import WhatIf, what_if
from coordinator_core.records import LogPosition
from coordinator_core.wire.batch_format import CONTROL_BIT, read_header
from jobs.queries.from_logs.answers import LogAnswers
from jobs.queries.group_rows import group_steps
from jobs.queries.interface import Answers, RebalanceFilter
from jobs.relations.moment import AsOf
from jobs.settings import load
from jobs.sources.files import find_logs
from tests.core.log_cleaner import compact
from tests.core.random_coordinator import RandomCoordinator, segment
from tests.jobs.conftest import SAMPLE_LOGS
from tests.jobs.logs import batches
from tests.jobs.queries.unreadable_logs import cut_key, newer_value, rewritten

if TYPE_CHECKING:
    from jobs.api import CoordinatorAudit
    from jobs.queries.from_tables.answers import StoredAnswers

TOPIC = "__consumer_offsets"
METADATA = "__cluster_metadata-0"
FIRST = f"{0:020}.log"
COMPACTED_PARTITION = 2
"""The samples have no record of this log partition."""

Damage = Callable[[Path], None]

NOT_OF_TABLES = re.compile(r"bytes left out| at byte \d+: ")
"""Warnings of single records and bytes, which the tables have met when they took them in."""


def marker_lost(folder: Path, partition: int = 0) -> None:
    """The first end of a transaction behind the first segment, where keys have occurred before."""
    for file in _segments(folder, partition)[1:]:
        for number, (_, data) in enumerate(batches(file.read_bytes())):
            if read_header(data, 0, 0).attributes & CONTROL_BIT:
                _without_batch(file, number)
                return
    raise AssertionError(f"{folder}: no end of a transaction")


def wrong_checksum(folder: Path, partition: int = 0) -> None:
    file = _segments(folder, partition)[1]
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(bytes(data))


def missing_segment(folder: Path, partition: int = 0) -> None:
    _segments(folder, partition)[1].unlink()


def without_beginning(folder: Path, partition: int = 1) -> None:
    """The first segment is gone, and the next one has no first batch."""
    first, second = _segments(folder, partition)[:2]
    first.unlink()
    _without_batch(second, 0)


def hole_in_metadata(folder: Path) -> None:
    file = folder / METADATA / FIRST
    _without_batch(file, len(list(batches(file.read_bytes()))) // 2)


def absent_partition(folder: Path) -> None:
    shutil.rmtree(folder / f"{TOPIC}-1")


def compacted(folder: Path) -> None:
    """A log partition of random groups of every type that was cleaned in part."""
    file = folder / f"{TOPIC}-{COMPACTED_PARTITION}" / FIRST
    chance = Random(4)
    file.write_bytes(segment(compact(random_log(chance), 200, 100, chance)))


def unreadable_values(folder: Path, partition: int = COMPACTED_PARTITION) -> None:
    """Every 17th record of a log partition has a value that a newer broker wrote."""
    for file in _segments(folder, partition):
        rewritten(file, newer_value, 17, 40)


def unreadable_keys(folder: Path, partition: int = COMPACTED_PARTITION) -> None:
    """Some records of a log partition have keys that end too early, so that they may be about any group."""
    for file in _segments(folder, partition):
        rewritten(file, cut_key, 60, 70)


def unreadable_commits(folder: Path) -> None:
    """Among the records that a newer broker wrote are offset commits, which most of the samples are."""
    unreadable_values(folder, 0)
    unreadable_values(folder, 1)


def all_of_them(folder: Path) -> None:
    """Each in a log partition of its own."""
    marker_lost(folder, 0)
    wrong_checksum(folder, 1)
    missing_segment(folder, 3)
    hole_in_metadata(folder)
    compacted(folder)
    unreadable_values(folder)


FEWEST = 6
"""Log partitions with fewer batches stay as they are."""


def damaged_anywhere(folder: Path, chance: Random) -> None:
    """Each log partition without its beginning, without some batches, both, or with a wrong bit."""
    for partition in sorted(folder.glob(f"{TOPIC}-*")):
        segments = sorted(partition.glob("*.log"))
        kept = [data for file in segments for _, data in batches(file.read_bytes())]
        if len(kept) < FEWEST:
            continue
        how = chance.choice(("beginning", "hole", "bit", "beginning and hole"))
        if "beginning" in how:
            kept = kept[chance.randrange(1, len(kept) - 2) :]
        if "hole" in how:
            first = chance.randrange(1, len(kept) - 1)
            del kept[first : first + chance.choice((1, 2, 10))]
        if how == "bit":
            number = chance.randrange(1, len(kept))
            kept[number] = kept[number][:-1] + bytes([kept[number][-1] ^ 1])
        for file in segments:
            file.unlink()
        (partition / f"{read_header(kept[0], 0, 0).base_offset:020}.log").write_bytes(b"".join(kept))


DAMAGES: dict[str, Damage] = {
    each.__name__: each
    for each in (
        marker_lost,
        wrong_checksum,
        missing_segment,
        without_beginning,
        hole_in_metadata,
        absent_partition,
        compacted,
        unreadable_values,
        unreadable_keys,
        unreadable_commits,
    )
}


NOTHING_GONE = (unreadable_values, unreadable_commits)
"""What leaves every record where it was."""


def random_log(chance: Random) -> list[Any]:
    return RandomCoordinator(chance).run(120)


def whole_logs(folder: Path) -> Path:
    """The samples, and one more log partition of groups of every type."""
    shutil.copytree(SAMPLE_LOGS, folder)
    (folder / f"{TOPIC}-{COMPACTED_PARTITION}" / FIRST).write_bytes(segment(random_log(Random(4))))
    return folder


def _segments(folder: Path, partition: int) -> list[Path]:
    return sorted((folder / f"{TOPIC}-{partition}").glob("*.log"))


def _without_batch(file: Path, number: int) -> None:
    found = [data for _, data in batches(file.read_bytes())]
    file.write_bytes(b"".join(found[:number] + found[number + 1 :]))


# --- answers ---------------------------------------------------------------------------------------------------------


@dataclass
class FromFiles:
    """Answers from a folder of logs, and the warnings that they came with."""

    folder: Path
    warnings: list[str] = field(default_factory=list)

    def answers(self) -> LogAnswers:
        """Answers that have not warned yet."""
        self.warnings.clear()
        return LogAnswers(find_logs([self.folder]), self.warnings.append, load)

    @property
    def about_records(self) -> list[str]:
        """The warnings without those of bytes that cannot be read, which the tables meet when they take them in."""
        return [each for each in self.warnings if not NOT_OF_TABLES.search(each)]


@dataclass
class FromTables:
    """Answers from the tables of a cluster, and the warnings that they came with."""

    audit: CoordinatorAudit
    warnings: list[str] = field(default_factory=list)

    def answers(self) -> StoredAnswers:
        """Answers that have not warned yet."""
        from jobs.queries.from_tables.answers import StoredAnswers
        from jobs.tables.folder_reader import FolderReader

        self.warnings.clear()
        settings = self.audit.settings
        return StoredAnswers(
            FolderReader(self.audit.tables.location), self.audit.cluster, settings.audit, self.warnings.append
        )


OPEN_VERDICTS = (Verdict.UNKNOWN, Verdict.EQUIVALENT)


class Claims(NamedTuple):
    """What answers state for certain: verdicts, violations, and findings that miss nothing.

    ``unknown`` and ``equivalent`` are no such verdicts: orders may be lost.
    """

    verdicts: set[tuple[str, LogPosition, str]]
    violations: set[tuple[str, LogPosition, str]]
    findings: set[tuple[str, str, str | None]]

    @classmethod
    def of(cls, answers: Answers) -> Claims:
        """Ask for all of them."""
        verdicts, found = answers.verdicts(None, 0), answers.findings(None)
        return cls(
            {(row.group_id, row.at, row.verdict) for row in verdicts if row.verdict not in OPEN_VERDICTS},
            {(row.group_id, row.at, row.rule) for row in answers.violations(None, 0)},
            {(row.group_id, row.kind, row.subject) for row in found if row.history_complete},
        )

    def not_in(self, truth: Claims) -> list[tuple[object, ...]]:
        """Return those that the truth does not have."""
        return [claim for mine, true in zip(self, truth, strict=True) for claim in sorted(mine - true, key=str)]


class Damaged:
    """Both kinds of answers about one damaged copy."""

    def __init__(self, folder: Path, damage: Damage, tables: CoordinatorAudit) -> None:
        damage(whole_logs(folder))
        self.files = FromFiles(folder)
        self.tables = FromTables(tables)


def moments(ends: Iterable[int] = (120, 200)) -> list[AsOf]:
    """The end of the log, and end offsets that every log partition has."""
    return [AsOf(), *(AsOf(offsets=dict.fromkeys(range(4), end)) for end in ends)]


BUSY = 3
"""The histories of so many groups are compared."""


def busiest(answers: Answers) -> list[str]:
    """The groups with most rebalances."""
    names = [row.group_id for row in answers.rebalances(RebalanceFilter())]
    return sorted(set(names), key=lambda name: (-names.count(name), name))[:BUSY]


QUESTIONS: dict[str, Callable[[Answers, list[str]], object]] = {
    "rebalances": lambda source, groups: list(source.rebalances(RebalanceFilter())),
    "verdicts": lambda source, groups: list(source.verdicts(None, 0)),
    "violations": lambda source, groups: list(source.violations(None, 0)),
    "findings": lambda source, groups: list(source.findings(None)),
    "explain": lambda source, groups: [list(_stories(source, name)) for name in groups],
    "commits": lambda source, groups: [_commit_steps(source, name) for name in groups],
    "whatif": lambda source, groups: [_supposed(source, name) for name in groups],
}
"""The questions about what groups went through, each with the groups that it may be about."""


def _stories(source: Answers, name: str) -> Iterable[object]:
    history = source.history(name)
    assert history is not None
    for row in history.rebalances:
        yield explain(history, row)
    yield from (history.epochs, history.memberships, history.assignments, history.initializations)


def _commit_steps(source: Answers, name: str) -> object:
    history = source.history(name)
    assert history is not None
    return group_steps(source, history)


def _supposed(source: Answers, name: str) -> object:
    rounds = source.rounds(name)
    is_shared = any(each.type is AssignedGroupType.SHARE for each in rounds)
    change = WhatIf() if is_shared else WhatIf(static_timeout_ms=60_000)
    return rounds, what_if(rounds, change) if rounds else None

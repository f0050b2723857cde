"""Short stretches of logs: some records of one group that follow each other, as inputs that are read in no time."""

import random
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from coordinator_core.errors import CoordinatorAuditError
from coordinator_core.records import LOG_TOPICS, Family
from coordinator_core.wire.batch_records import LogRecord
from coordinator_core.wire.batch_writer import NewRecord, encode_batch
from coordinator_core.wire.batches import read_rows
from coordinator_core.wire.record_codec import decode_record
from tests.fuzz.mutations import changed_record, family_of, mutate, with_other_types
from tests.fuzz.samples import MOST_BYTES, Logs, clusters

MOST_RECORDS: Final = 10
"""The records of one stretch."""

MOST_TOPIC_RECORDS: Final = 40
"""The records of the metadata log beside it."""

CHANGED: Final = 0.4
"""The share of records of a crowd that are changed: a rule often needs a whole one before a changed one."""

MIXED: Final = 0.15
"""The share of stretches of a crowd that get records of other types of groups under the id of their group."""

SEGMENT: Final = "00000000000000000000.log"
Records = list[LogRecord]


class Groups(NamedTuple):
    """The records of one cluster: by group those of each log, and some of the metadata log from its beginning."""

    by_group: dict[str, dict[Family, Records]]
    topics: Records


class Crowd(NamedTuple):
    """Logs of many groups, and how many of their records were changed or added."""

    logs: Logs
    changed: int


class Stretch(NamedTuple):
    """Changed logs, what was done to them, and the group that they are about."""

    logs: Logs
    done: str
    group: str


@cache
def all_groups(simulated: Path) -> list[Groups]:
    """Return the records of each cluster that ``clusters`` has."""
    return [_groups(logs) for logs in clusters(simulated)]


def _groups(logs: Logs) -> Groups:
    by_group: dict[str, dict[Family, Records]] = {}
    topics: Records = []
    for name, data in logs.items():
        family = family_of(name)
        for record in _records(data[:MOST_BYTES]):
            if family is Family.METADATA:
                if len(topics) < MOST_TOPIC_RECORDS:
                    topics.append(record)
            elif (group := group_of(record, family)) is not None:
                by_group.setdefault(group, {}).setdefault(family, []).append(record)
    return Groups(by_group, topics)


def _records(data: bytes) -> Iterator[LogRecord]:
    try:
        rows = read_rows(lambda at, size: data[at : at + size], len(data))
        yield from (row for row in rows if isinstance(row, LogRecord) and row.key is not None)
    except CoordinatorAuditError:
        return


def group_of(record: LogRecord, family: Family) -> str | None:
    """Return the id of the group that the key of a record has; None: it has none, or cannot be decoded."""
    try:
        key = decode_record(record.key, None, family).key
    except CoordinatorAuditError:
        return None
    return str(key.get("groupId", key.get("group")) or "") or None


def stretch(simulated: Path, choose: random.Random) -> Stretch:
    """Return a changed stretch of one group of any cluster."""
    groups = choose.choice(all_groups(simulated))
    group = choose.choice(list(groups.by_group))
    logs: Logs = {}
    for family, records in groups.by_group[group].items():
        first = 0 if choose.random() < 0.6 else choose.randrange(len(records))
        logs[f"{LOG_TOPICS[family]}-{choose.choice((0, 0, 0, 1))}/{SEGMENT}"] = written(
            records[first : first + choose.randint(1, MOST_RECORDS)], choose
        )
    if groups.topics and choose.random() < 0.5:
        logs[f"{LOG_TOPICS[Family.METADATA]}-0/{SEGMENT}"] = written(groups.topics, choose)
    return Stretch(*mutate(logs, choose), group)


def crowd(simulated: Path, choose: random.Random, number: int) -> Crowd:
    """Return stretches of many groups in one log: with changed fields, and with records of other types of groups.

    All of a log lies in few batches, so that a changed record costs what it takes to decode and to judge it.
    """
    logs: dict[Family, Records] = {}
    changed = 0
    for _ in range(number):
        groups = choose.choice(all_groups(simulated))
        for family, records in groups.by_group[choose.choice(list(groups.by_group))].items():
            first = choose.randrange(len(records))
            some = records[first : first + choose.randint(1, MOST_RECORDS)]
            if choose.random() < MIXED:
                mixed = with_other_types(some, family, choose)
                changed += len(mixed) - len(some)
                some = mixed
            for record in some:
                is_changed = choose.random() < CHANGED
                logs.setdefault(family, []).append(changed_record(record, family, choose) if is_changed else record)
                changed += is_changed
    return Crowd({f"{LOG_TOPICS[of]}-0/{SEGMENT}": written(part, choose) for of, part in logs.items()}, changed)


def written(records: Records, choose: random.Random) -> bytes:
    """Return a segment with these records in one batch or two, from offset 0 on."""
    rows = [NewRecord(at, each.timestamp, each.key, each.value) for at, each in enumerate(records)]
    middle = choose.randrange(len(rows)) if choose.random() < 0.3 else 0
    return b"".join(encode_batch(part) for part in (rows[:middle], rows[middle:]) if part)

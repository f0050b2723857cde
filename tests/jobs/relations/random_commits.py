"""Logs of offset commits from a seed: transactions that are committed, aborted and open, tombstones, topics that were
created again, commits that go back, and records of groups between them.
"""

from pathlib import Path
from random import Random
from typing import Final

from coordinator_core.records import RecordType
from coordinator_core.wire.batch_writer import NewRecord, Producer, encode_batch
from coordinator_core.wire.control import ABORT, COMMIT
from coordinator_core.wire.primitives import uuid_text
from coordinator_core.wire.record_codec import encode_key, encode_value
from tests.jobs.logs import marker, write_segment

GROUPS: Final = ("a", "b", "it's")
PARTITIONS: Final = (("t", 0), ("t", 1), ("größe", 0))
TOPIC_IDS: Final = tuple(uuid_text(bytes([number]) * 16) for number in (1, 2))
STEP_MS: Final = 1_000

End = tuple[str, int, int, int]
"""Topic, partition, time (ms) and end offset."""


class RandomLog:
    """One partition of the log of groups."""

    def __init__(self, rng: Random, partition: int) -> None:
        self.rng = rng
        self.partition = partition
        self.batches: list[bytes] = []
        self.offset = 0
        self.time_ms = 1_000_000
        self.committed: dict[tuple[str, str, int], int] = {}
        self.open: set[int] = set()

    def record(self, *, in_transaction: bool) -> tuple[bytes, bytes | None]:
        """A commit; outside of transactions seldom a tombstone of one, or of the metadata of a group."""
        rng, group = self.rng, self.rng.choice(GROUPS) + str(self.partition)
        if not in_transaction and rng.random() < 0.05:
            return encode_key(RecordType.CONSUMER_GROUP_METADATA, {"groupId": group}), None
        topic, number = rng.choice(PARTITIONS)
        key = encode_key(RecordType.OFFSET_COMMIT, {"group": group, "topic": topic, "partition": number})
        if not in_transaction and rng.random() < 0.12:
            return key, None
        before = self.committed.get((group, topic, number), 0)
        after = max(0, before + rng.choice([-40, 0, 0, 5, 10, 20]))
        self.committed[group, topic, number] = after
        value = {"offset": after, "leaderEpoch": rng.choice([-1, 3]), "metadata": "", "commitTimestamp": self.time_ms}
        if rng.random() < 0.7:
            value["topicId"] = rng.choice(TOPIC_IDS)
        version = 4 if "topicId" in value else rng.choice([3, 4])
        return key, encode_value(RecordType.OFFSET_COMMIT, version, value)

    def add(self, count: int, producer_id: int | None = None) -> None:
        """Add a batch; in the transaction of a producer if one is given."""
        new = []
        for _ in range(count):
            self.time_ms += self.rng.choice([0, STEP_MS, STEP_MS, 7 * STEP_MS])
            new.append(NewRecord(self.offset, self.time_ms, *self.record(in_transaction=producer_id is not None)))
            self.offset += 1
        if producer_id is None:
            self.batches.append(encode_batch(new))
        else:
            self.open.add(producer_id)
            self.batches.append(encode_batch(new, producer=Producer(producer_id, 1, 0), transactional=True))

    def end(self, producer_id: int) -> None:
        """Commit a transaction, or abort it."""
        self.open.remove(producer_id)
        kind = self.rng.choice([COMMIT, COMMIT, ABORT])
        # A marker has the time of the broker that led then: the next one may be earlier.
        time_ms = self.time_ms + (self.offset % 3 - 1) * 9 * STEP_MS
        self.batches.append(marker(kind, producer_id, self.offset, time_ms))
        self.offset += 1

    def ends(self) -> list[End]:
        """End offsets at random times, never below what was committed at the end."""
        found = []
        for topic, number in PARTITIONS[: self.rng.randrange(1, len(PARTITIONS) + 1)]:
            end = max([0, *(at for (_, *of), at in self.committed.items() if of == [topic, number])])
            for time_ms in sorted(self.rng.sample(range(1_000_000, self.time_ms + 2 * STEP_MS, STEP_MS // 2), 8)):
                end += self.rng.choice([0, 0, 30, 60])
                found.append((topic, number, time_ms, end))
        return found


def write_logs(folder: Path, seed: int, *, batches: int = 60, holes: bool = False) -> list[End]:
    """Write two partitions of the log of groups, and return end offsets of the partitions that are committed.

    With ``holes`` the logs lack some batches.
    """
    rng = Random(seed)
    ends: dict[tuple[str, int, int], int] = {}
    for partition in (0, 1):
        log = RandomLog(rng, partition)
        for _ in range(batches):
            producer_id = rng.choice([None, None, 0, 8])
            if producer_id in log.open and rng.random() < 0.4:
                log.end(producer_id)
            else:
                log.add(rng.randrange(1, 5), producer_id)
        kept = log.batches if not holes else [each for each in log.batches if rng.random() < 0.9]
        write_segment(folder / f"__consumer_offsets-{partition}", kept)
        for topic, number, time_ms, end in log.ends():
            ends.setdefault((topic, number, time_ms), end)
    return [(*of, end) for of, end in sorted(ends.items())]

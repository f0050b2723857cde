"""The commits of one group, reduced to what findings need: a sum for each partition, with what went back and what was
removed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, NamedTuple

from coordinator_core.audit.folds.commit_times import CommitTrail, TrailFold
from coordinator_core.audit.folds.removals import TOPIC_DELETED, WITH_GROUP, how_removed, removal_window, with_group
from coordinator_core.record_fields.offset_commit import OffsetCommitRecord, OffsetCommitValue
from coordinator_core.records import LogPosition

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Rewind(NamedTuple):
    """A commit with a lower offset than the commit before it."""

    at: Annotated[LogPosition, "the commit that goes back"]
    before: Annotated[int, "offset committed before"]
    after: Annotated[int, "offset committed now"]
    metadata: Annotated[str | None, "the metadata of the commit; franz-go writes its member id"] = None
    log_offset_before: Annotated[int | None, "log offset of the commit before; null: not known"] = None


class Removal(NamedTuple):
    """The tombstone of a committed offset."""

    at: Annotated[LogPosition, "the tombstone"]
    offset: Annotated[int, "the offset that was committed"]
    how: Annotated[
        str,
        "group deleted, group expired, group deleted or expired, topic deleted, expired, deleted (by a request), or "
        "expired or deleted; the last two with "
        "'or removed with its topic' where it is not known whether the topic was deleted",
    ]


class PartitionCommits(NamedTuple):
    """A summary of one group's commits for one partition, without those of aborted and of open transactions."""

    topic: Annotated[str, "topic name"]
    partition: Annotated[int, "partition"]
    commits: Annotated[int, "how many"]
    first: Annotated[LogPosition, "the first one"]
    last: Annotated[LogPosition, "the last one"]
    offset: Annotated[int | None, "the offset that is committed; null: removed"]
    rewinds: Annotated[tuple[Rewind, ...], "commits that went back"]
    removals: Annotated[tuple[Removal, ...], "tombstones"]
    more_rewinds: Annotated[int, "commits that went back, beyond those that are kept"] = 0
    more_removals: Annotated[int, "tombstones beyond those that are kept"] = 0
    topic_id: Annotated[str | None, "topic id that the last commit names; null: none, or removed"] = None


class OpenTransaction(NamedTuple):
    """A transaction that has committed offsets of the group and did not end."""

    producer_id: Annotated[int, "the producer"]
    first: Annotated[LogPosition, "its first commit"]
    partitions: Annotated[int, "partitions of which it has commits"]


MOST_KEPT = 1_000
"""The first rewinds and the first removals of a partition are kept, at most this many of each; others are counted."""


PassedCommits = Sequence["NDArray[np.int64]"]
"""Commits of a partition as columns: times (ms), log offsets, committed offsets. Without columns there are none."""


class PendingCommit(NamedTuple):
    """What the fold takes from a commit record with a value."""

    topic: str
    partition: int
    at: LogPosition
    offset: int
    topic_id: str | None
    expires_ms: int
    committed_ms: int
    metadata: str | None


@dataclass(slots=True)
class PartitionFold:
    """What is known of the commits of one partition."""

    topic: str
    partition: int
    first: LogPosition
    last: LogPosition
    commits: int = 0
    offset: int | None = None
    topic_id: str | None = None
    expires_ms: int | None = None
    committed_ms: int = -1
    rewinds: list[Rewind] = field(default_factory=list)
    removals: list[Removal] = field(default_factory=list)
    more_rewinds: int = 0
    more_removals: int = 0
    trail: TrailFold | None = None

    @property
    def steps(self) -> int:
        """Number of commits, and of tombstones that removed one."""
        return self.commits + len(self.removals) + self.more_removals

    def note_step(self, time_ms: int, at: int, offset: int | None) -> None:
        """Take the last one into what is kept over time, if that is."""
        trail = self.trail
        if trail is None:
            return
        # Nearly every commit lies in the interval of the one before: this is what ``add`` does then, without a call.
        if trail.newest_ms <= time_ms < trail.until_ms:
            trail.newest_ms, trail.newest_at, trail.newest_offset = time_ms, at, offset
        else:
            trail.add(time_ms, at, offset, self.steps)

    def goes_back(self, offset: int, topic_id: str | None) -> bool:
        """Whether a commit is below the last one, of the same topic: a topic that was created again has another id."""
        same = self.topic_id is None or topic_id is None or topic_id == self.topic_id
        return same and self.offset is not None and offset < self.offset


@dataclass(slots=True)
class CommitMemory:
    """All that a fold of commits keeps: partitions in any order, and by producer the commits of open transactions."""

    partitions: list[PartitionFold] = field(default_factory=list)
    pending: dict[int, list[PendingCommit]] = field(default_factory=dict)


class CommitFold:
    """The commits of one group, fed in log order: plain ones, transactional ones, and the ends of transactions."""

    __slots__ = ("_has_trails", "_open", "_partitions")

    def __init__(self, memory: CommitMemory | None = None, *, has_trails: bool = False) -> None:
        """Begin, or go on with the ``memory`` that an earlier fold left. ``has_trails``: keep commits over time."""
        memory = memory or CommitMemory()
        self._has_trails = has_trails
        self._partitions = {(partition.topic, partition.partition): partition for partition in memory.partitions}
        self._open = memory.pending

    @property
    def memory(self) -> CommitMemory:
        """What a later fold needs to go on."""
        return CommitMemory(list(self._partitions.values()), self._open)

    def feed(self, record: OffsetCommitRecord, producer_id: int | None = None) -> None:
        """Take in an OFFSET_COMMIT record; one of a transaction (``producer_id``) counts once the transaction is
        committed.
        """
        if record.value is None:
            self._remove(record)
        elif producer_id is not None:
            self._open.setdefault(producer_id, []).append(_pending(record, record.value))
        else:
            self._commit(_pending(record, record.value))

    def pass_over(self, partition: tuple[str, int], passed: PassedCommits) -> None:
        """Take in plain commits that go forward, behind one that was fed and before one that is fed next."""
        known = self._partitions[partition]
        if known.trail is None:
            known.commits += len(passed[0])
            return
        for time_ms, at, offset in zip(*(column.tolist() for column in passed), strict=True):
            known.commits += 1
            known.note_step(time_ms, at, offset)

    def end_transaction(self, producer_id: int, *, committed: bool, ended_ms: int = -1) -> None:
        """Take in the marker that ends the producer's transaction, at ``ended_ms``; plain commits later in the log
        override its commits.
        """
        for commit in self._open.pop(producer_id, ()):
            known = self._partitions.get(commit[:2])
            # Commits of a transaction hold from its marker on: a plain commit that lies between the two came first.
            later = known is not None and known.last.offset > commit.at.offset
            if committed and not later:
                self._commit(commit, ended_ms)

    def group_deleted(self, at: LogPosition) -> None:
        """Take in that the group ended at this position: offsets removed at the same time were removed with the
        group. Without a time (-1) nothing tells which were.
        """
        if at.timestamp_ms < 0:
            return
        for partition in self._partitions.values():
            partition.removals = [
                removal._replace(how=with_group(removal.how)) if removal.at.timestamp_ms == at.timestamp_ms else removal
                for removal in partition.removals
            ]

    def topic_deleted(self, topic: str, deleted_ms: int) -> None:
        """Take in that a topic was deleted: its offsets removed around that time were removed with the topic, unless
        they were removed with the group, of which the log itself has the order.
        """
        since_ms, until_ms = removal_window(deleted_ms)

        def explained(removal: Removal) -> Removal:
            is_then = since_ms <= removal.at.timestamp_ms <= until_ms
            return removal._replace(how=TOPIC_DELETED) if is_then and removal.how not in WITH_GROUP else removal

        for (name, _), partition in self._partitions.items():
            if name == topic:
                partition.removals = [explained(removal) for removal in partition.removals]

    def partitions(self) -> Iterator[PartitionCommits]:
        """Yield what is known of each partition."""
        for (topic, number), known in sorted(self._partitions.items()):
            yield PartitionCommits(
                topic,
                number,
                known.commits,
                known.first,
                known.last,
                known.offset,
                tuple(known.rewinds),
                tuple(known.removals),
                known.more_rewinds,
                known.more_removals,
                None if known.offset is None else known.topic_id,
            )

    def trails(self) -> Iterator[CommitTrail]:
        """Yield the commits of each partition over time."""
        for (topic, number), known in sorted(self._partitions.items()):
            if known.trail is not None and known.trail.points:
                yield CommitTrail(topic, number, known.first.partition, tuple(known.trail.all(known.steps)))

    def transactions(self) -> Iterator[OpenTransaction]:
        """Yield the transactions that have not ended."""
        for producer_id, commits in self._open.items():
            yield OpenTransaction(producer_id, commits[0].at, len({commit[:2] for commit in commits}))

    def give_up_transactions(self) -> None:
        """Drop all open transactions: part of the log is missing here, so how they ended is not known."""
        self._open.clear()

    def _commit(self, commit: PendingCommit, held_ms: int = -1) -> None:
        at, offset, key = commit.at, commit.offset, commit[:2]
        known = self._partitions.get(key)
        if known is None:
            known = self._partitions[key] = PartitionFold(*key, at, at, trail=TrailFold() if self._has_trails else None)
        # A lower offset of a topic that was made again is no step back.
        elif known.goes_back(offset, commit.topic_id):
            if len(known.rewinds) < MOST_KEPT:
                known.rewinds.append(Rewind(at, known.offset or 0, offset, commit.metadata, known.last.offset))
            else:
                known.more_rewinds += 1
        known.commits += 1
        known.last, known.offset, known.topic_id = at, offset, commit.topic_id
        known.expires_ms, known.committed_ms = commit.expires_ms, commit.committed_ms
        known.note_step(at.timestamp_ms if held_ms < 0 else max(at.timestamp_ms, held_ms), at.offset, offset)

    def _remove(self, record: OffsetCommitRecord) -> None:
        key = record.key["topic"], record.key["partition"]
        # As in Kafka a tombstone also removes what open transactions have committed for the partition.
        for commits in self._open.values():
            commits[:] = [commit for commit in commits if commit[:2] != key]
        self._open = {producer_id: commits for producer_id, commits in self._open.items() if commits}
        known = self._partitions.get(key)
        if known is None or known.offset is None:
            return
        now_ms = record.at.timestamp_ms
        past_expiry = known.expires_ms is not None and 0 <= known.expires_ms <= now_ms
        age_ms = now_ms - known.committed_ms if known.committed_ms >= 0 <= now_ms else None
        if len(known.removals) < MOST_KEPT:
            known.removals.append(Removal(record.at, known.offset, how_removed(age_ms, past_expiry=past_expiry)))
        else:
            known.more_removals += 1
        known.offset = None
        known.note_step(now_ms, record.at.offset, None)


def _pending(record: OffsetCommitRecord, value: OffsetCommitValue) -> PendingCommit:
    key = record.key
    return PendingCommit(
        key["topic"],
        key["partition"],
        record.at,
        value["offset"],
        value.get("topicId"),
        value.get("expireTimestamp", -1),
        value["commitTimestamp"],
        value["metadata"],
    )

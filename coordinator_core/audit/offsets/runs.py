"""Commits of one group as runs: the input of the steps, from log files one run a commit, from tables already joined."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from coordinator_core.cluster.given_topics import NO_REACH, TopicReach
from coordinator_core.groups.offsets import TopicPartition
from coordinator_core.history.coverage import Coverage
from coordinator_core.record_fields.offset_commit import OffsetCommitRecord, OffsetCommitValue
from coordinator_core.records import LogPosition


class Held(NamedTuple):
    """The offset that is committed for a partition. ``expires_ms``: its own expiry (value version 1), -1: none.

    ``committed_ms`` is the time that the commit itself names; ``topic_id`` is None if it names none.
    """

    at: LogPosition
    offset: int
    topic_id: str | None = None
    expires_ms: int = -1
    committed_ms: int = -1


class CommitRun(NamedTuple):
    """Commits of one partition that follow each other, none of them below the one before it; or one tombstone
    (also one that removes nothing that the log shows).

    ``before``: what was committed before the run; None: nothing, as far as the log shows. ``offset``: the offset that
    the last of them commits; None: a tombstone removed it. ``held_ms``: when a commit of a transaction began to hold,
    by the marker of the transaction; None: with its own record. ``metadata``: that of all its commits, None where it is
    not known to name a member.
    """

    partition: TopicPartition
    first: LogPosition
    last: LogPosition
    commits: int
    before: Held | None
    first_offset: int | None
    offset: int | None
    topic_id: str | None = None
    held_ms: int | None = None
    metadata: str | None = None


class GroupCommits(NamedTuple):
    """The commits of one group that hold, and what the logs say about removed offsets.

    ``runs``: in the order in which they hold, those of one partition one after the other. ``group_ends``: the
    tombstones of the group. ``topic_ends``: times (ms) at which a topic was deleted, by name, over the times ``reach``.
    ``left_out``: number of
    commits of transactions that are open at the end of the log, or whose end is lost; those that a later
    tombstone removed do not count.
    """

    runs: Sequence[CommitRun]
    coverage: Coverage
    group_ends: Sequence[LogPosition] = ()
    topic_ends: Mapping[str, Sequence[int]] = {}
    left_out: int = 0
    reach: TopicReach = NO_REACH


class CommitOrder:
    """Puts the commits of one group, fed in log order, into the order in which they hold.

    A commit of a transaction holds from the marker that commits the transaction, unless a later commit came before it.
    A tombstone also removes the commits of open transactions.
    """

    def __init__(self) -> None:
        self._undecided: Counter[TopicPartition] = Counter()
        self._held: dict[TopicPartition, Held | None] = {}
        self._newest: dict[TopicPartition, int] = {}
        self._open: dict[int, list[OffsetCommitRecord]] = defaultdict(list)

    def feed(self, record: OffsetCommitRecord, producer_id: int | None = None) -> Iterator[CommitRun]:
        """Take in a record; one of a transaction has its ``producer_id``. Yield the run that it makes, if any."""
        if record.value is None:
            yield from self._remove(record)
        elif producer_id is not None:
            self._open[producer_id].append(record)
        else:
            yield self._commit(record, record.value)

    def end_transaction(self, producer_id: int, *, committed: bool, held_ms: int | None = None) -> Iterator[CommitRun]:
        """Take in the marker that ends the producer's transaction, at ``held_ms``; yield the runs that it makes."""
        for record in self._open.pop(producer_id, ()):
            is_overtaken = self._newest.get(partition_of(record), -1) > record.at.offset
            if committed and record.value is not None and not is_overtaken:
                yield self._commit(record, record.value)._replace(held_ms=held_ms)

    def give_up_transactions(self) -> None:
        """Leave out all open transactions: a part of the log is missing here, so how they ended is not known."""
        self._undecided.update(partition_of(record) for records in self._open.values() for record in records)
        self._open.clear()

    @property
    def left_out(self) -> int:
        """Return the number of commits in open transactions, and in those that were given up; see ``GroupCommits``."""
        return self._undecided.total() + sum(map(len, self._open.values()))

    def _commit(self, record: OffsetCommitRecord, value: OffsetCommitValue) -> CommitRun:
        key, at, offset, topic_id = partition_of(record), record.at, value["offset"], value.get("topicId")
        run = CommitRun(
            key, at, at, 1, self._held.get(key), offset, offset, topic_id, metadata=value["metadata"] or None
        )
        expires_ms = value.get("expireTimestamp", -1)
        self._held[key] = Held(at, offset, topic_id, expires_ms, value["commitTimestamp"])
        self._newest[key] = at.offset
        return run

    def _remove(self, record: OffsetCommitRecord) -> Iterator[CommitRun]:
        key = partition_of(record)
        self._undecided.pop(key, None)
        for producer_id, records in list(self._open.items()):
            self._open[producer_id] = [waiting for waiting in records if partition_of(waiting) != key]
        before = self._held.get(key)
        self._held[key] = None
        self._newest[key] = record.at.offset
        yield CommitRun(key, record.at, record.at, 1, before, None, None)


def partition_of(record: OffsetCommitRecord) -> TopicPartition:
    """Return the partition for which a record commits an offset."""
    return TopicPartition(record.key["topic"], record.key["partition"])

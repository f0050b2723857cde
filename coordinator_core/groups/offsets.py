"""Committed offsets: the latest of each group and partition; those of open transactions are kept separately."""

from dataclasses import dataclass, field
from typing import NamedTuple

from coordinator_core.record_fields.offset_commit import OffsetCommitRecord, OffsetCommitValue
from coordinator_core.records import LogPosition


class TopicPartition(NamedTuple):
    """A partition of a topic by name, which is how offsets are committed."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class Commit(NamedTuple):
    """One committed offset and the record that proves it.

    ``offset`` may be negative: brokers log a commit of -1. ``leader_epoch``, ``expire_timestamp`` (ms) and ``topic_id``
    are None if the record has none. ``producer_id`` is that of the transaction, None for a commit without one.
    """

    offset: int
    leader_epoch: int | None
    metadata: str
    commit_timestamp: int
    expire_timestamp: int | None
    topic_id: str | None
    at: LogPosition
    producer_id: int | None = None


Commits = dict[TopicPartition, Commit]


def commit_of(value: OffsetCommitValue, at: LogPosition, producer_id: int | None = None) -> Commit:
    """Return the commit in the value of an OFFSET_COMMIT record of any version."""
    leader_epoch = value.get("leaderEpoch", -1)
    expire_timestamp = value.get("expireTimestamp", -1)
    return Commit(
        value["offset"],
        None if leader_epoch == -1 else leader_epoch,
        value["metadata"],
        value["commitTimestamp"],
        None if expire_timestamp == -1 else expire_timestamp,
        value.get("topicId"),
        at,
        producer_id,
    )


@dataclass(slots=True)
class GroupOffsets:
    """The offsets of one group: ``committed``, and by producer id those whose transaction is still open."""

    committed: Commits = field(default_factory=dict)
    pending: dict[int, Commits] = field(default_factory=dict)

    def stable(self) -> Commits:
        """Return the committed offsets of partitions without an open transaction, as a requireStable fetch does."""
        unstable = {partition for commits in self.pending.values() for partition in commits}
        return {partition: commit for partition, commit in self.committed.items() if partition not in unstable}


@dataclass(slots=True)
class OffsetLog:
    """The offsets of all groups of one log partition, folded in log order: the end of a transaction concerns all
    of them.
    """

    groups: dict[str, GroupOffsets] = field(default_factory=dict)
    open_transactions: dict[int, set[str]] = field(default_factory=dict)

    def apply(self, record: OffsetCommitRecord, producer_id: int | None = None) -> None:
        """Apply an OFFSET_COMMIT record, or a LEGACY_OFFSET_COMMIT, which has fewer fields.

        ``producer_id`` is that of the record batch if the batch is transactional.

        A tombstone also removes the commits of open transactions for its partition, so that their later COMMIT does not
        restore the offsets of a group that was deleted.
        """
        group_id = record.group_id
        partition = TopicPartition(record.key["topic"], record.key["partition"])
        value = record.value
        offsets = self.groups.get(group_id)
        if offsets is None:
            if value is None:
                return
            offsets = self.groups[group_id] = GroupOffsets()
        if value is None:
            offsets.committed.pop(partition, None)
            for commits in offsets.pending.values():
                commits.pop(partition, None)
        elif producer_id is None:
            offsets.committed[partition] = commit_of(value, record.at)
        else:
            commit = commit_of(value, record.at, producer_id)
            offsets.pending.setdefault(producer_id, {})[partition] = commit
            # A transaction may commit offsets of several groups, and its marker names none of them.
            self.open_transactions.setdefault(producer_id, set()).add(group_id)

    def end_transaction(self, producer_id: int, *, committed: bool) -> None:
        """Apply the marker that ends the producer's transaction. A plain commit later in the log is not overwritten.

        The marker's producer epoch may be one above that of the data, so only the id counts.
        """
        for group_id in self.open_transactions.pop(producer_id, ()):
            offsets = self.groups[group_id]
            pending = offsets.pending.pop(producer_id, {})
            if not committed:
                continue
            for partition, commit in pending.items():
                present = offsets.committed.get(partition)
                if present is None or present.at.offset < commit.at.offset:
                    offsets.committed[partition] = commit

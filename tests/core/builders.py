"""Coordinator records for tests, written as a broker writes them: one after the other into one log partition."""

from collections.abc import Iterable
from typing import Any

from coordinator_core.records import CoordinatorRecord, Fields, LogPosition, RecordType
from coordinator_core.wire.embedded import encode_blob

Partitions = dict[str, list[int]]


class GroupLog:
    """Makes the records of one group, at consecutive offsets and a second apart."""

    def __init__(self, group_id: str = "g") -> None:
        self.group_id = group_id
        self.offset = 0
        self.member_epochs: dict[str, int] = {}

    def was_at(self, member_id: str, epoch: int) -> int:
        """The epoch at which the member was before it is at this one; 0: it has just joined."""
        before = self.member_epochs.get(member_id, 0)
        self.member_epochs[member_id] = epoch
        return before

    def record(self, record_type: int, value: Fields | None, **key: Any) -> CoordinatorRecord:
        group = {"group" if record_type <= RecordType.GROUP_METADATA else "groupId": self.group_id}
        at = LogPosition(0, self.offset, 1_000 * self.offset)
        self.offset += 1
        return CoordinatorRecord(at, record_type, group | key, value)

    def tombstone(self, record_type: int, **key: Any) -> CoordinatorRecord:
        if record_type in (8, 14, 22):
            self.member_epochs.pop(key.get("memberId", ""), None)
        return self.record(record_type, None, **key)

    # --- offsets -----------------------------------------------------------------------------------------------------

    def commit(self, topic: str, partition: int, offset: int, **more: Any) -> CoordinatorRecord:
        value = {"offset": offset, "leaderEpoch": -1, "metadata": "", "commitTimestamp": 1_000 * self.offset} | more
        return self.record(RecordType.OFFSET_COMMIT, value, topic=topic, partition=partition)

    def no_commit(self, topic: str, partition: int) -> CoordinatorRecord:
        return self.tombstone(RecordType.OFFSET_COMMIT, topic=topic, partition=partition)

    # --- classic -----------------------------------------------------------------------------------------------------

    def classic(
        self, generation: int, members: list[Fields] | None = None, protocol: str | None = "range", **more: Any
    ) -> CoordinatorRecord:
        members = members or []
        value = {
            "protocolType": "consumer",
            "generation": generation,
            "protocol": protocol if members else None,
            "leader": members[0]["memberId"] if members else None,
            "currentStateTimestamp": 1_000 * self.offset,
            "members": members,
        }
        return self.record(RecordType.GROUP_METADATA, value | more)

    # --- consumer ----------------------------------------------------------------------------------------------------

    def member(self, member_id: str, **more: Any) -> CoordinatorRecord:
        value = {
            "instanceId": None,
            "rackId": None,
            "clientId": f"client-{member_id}",
            "clientHost": "/10.0.0.1",
            "subscribedTopicNames": ["orders"],
            "subscribedTopicRegex": "",
            "rebalanceTimeoutMs": 300_000,
            "serverAssignor": None,
        }
        return self.record(RecordType.CONSUMER_GROUP_MEMBER_METADATA, value | more, memberId=member_id)

    def epoch(self, epoch: int, metadata_hash: int = 7) -> CoordinatorRecord:
        value = {"epoch": epoch, "metadataHash": metadata_hash}
        return self.record(RecordType.CONSUMER_GROUP_METADATA, value)

    def target_epoch(self, epoch: int, timestamp: int = 1) -> CoordinatorRecord:
        value = {"assignmentEpoch": epoch, "assignmentTimestamp": timestamp}
        return self.record(RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA, value)

    def target(self, member_id: str, partitions: Partitions) -> CoordinatorRecord:
        value = {"topicPartitions": topic_partitions(partitions)}
        return self.record(RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER, value, memberId=member_id)

    def current(
        self,
        member_id: str,
        epoch: int,
        assigned: Partitions | None = None,
        revoking: Partitions | None = None,
        state: int = 0,
        **more: Any,
    ) -> CoordinatorRecord:
        value = {
            "memberEpoch": epoch,
            "previousMemberEpoch": self.was_at(member_id, epoch),
            "state": state,
            "assignedPartitions": topic_partitions(assigned or {}),
            "partitionsPendingRevocation": topic_partitions(revoking or {}),
        }
        return self.record(RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT, value | more, memberId=member_id)

    def regex(self, regex: str, topics: list[str]) -> CoordinatorRecord:
        value = {"topics": topics, "version": 1, "timestamp": 5}
        return self.record(RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION, value, regularExpression=regex)

    def join(self, member_id: str, epoch: int, partitions: Partitions) -> list[CoordinatorRecord]:
        """A first join, or one that changes nobody else's target."""
        return [
            self.member(member_id),
            self.epoch(epoch),
            self.target(member_id, partitions),
            self.target_epoch(epoch),
            self.current(member_id, epoch, partitions),
        ]

    def gone(self, member_id: str) -> list[CoordinatorRecord]:
        """The tombstones of a member that left, in the broker's order."""
        return [self.tombstone(record_type, memberId=member_id) for record_type in (8, 7, 5)]

    # --- share -------------------------------------------------------------------------------------------------------

    def share_member(self, member_id: str) -> CoordinatorRecord:
        value = {
            "rackId": None,
            "clientId": f"client-{member_id}",
            "clientHost": "/10.0.0.1",
            "subscribedTopicNames": ["orders"],
        }
        return self.record(RecordType.SHARE_GROUP_MEMBER_METADATA, value, memberId=member_id)

    def share_current(self, member_id: str, epoch: int, assigned: Partitions) -> CoordinatorRecord:
        value = {
            "memberEpoch": epoch,
            "previousMemberEpoch": self.was_at(member_id, epoch),
            "state": 0,
            "assignedPartitions": topic_partitions(assigned),
        }
        return self.record(RecordType.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT, value, memberId=member_id)

    def share_state(self, initialized: dict[str, tuple[str, list[int]]], **more: Any) -> CoordinatorRecord:
        topics = [{"topicId": i, "topicName": name, "partitions": p} for i, (name, p) in initialized.items()]
        value = {"initializingTopics": [], "initializedTopics": topics, "deletingTopics": []}
        return self.record(RecordType.SHARE_GROUP_STATE_PARTITION_METADATA, value | more)

    # --- streams -----------------------------------------------------------------------------------------------------

    def streams_member(self, member_id: str, **more: Any) -> CoordinatorRecord:
        value = {
            "instanceId": None,
            "rackId": None,
            "clientId": f"client-{member_id}",
            "clientHost": "/10.0.0.1",
            "rebalanceTimeoutMs": 300_000,
            "topologyEpoch": 0,
            "processId": f"process-{member_id}",
            "userEndpoint": {"host": "10.0.0.1", "port": 7070},
            "clientTags": [{"key": "zone", "value": "a"}],
        }
        return self.record(RecordType.STREAMS_GROUP_MEMBER_METADATA, value | more, memberId=member_id)

    def streams_epoch(self, epoch: int, validated: int = 0, metadata_hash: int = 7) -> CoordinatorRecord:
        value = {
            "epoch": epoch,
            "metadataHash": metadata_hash,
            "validatedTopologyEpoch": validated,
            "lastAssignmentConfigs": [{"key": "num.standby.replicas", "value": "1"}],
        }
        return self.record(RecordType.STREAMS_GROUP_METADATA, value)

    def topology(self, subtopologies: list[Fields] | None = None, epoch: int = 0) -> CoordinatorRecord:
        value = {"epoch": epoch, "subtopologies": subtopologies or [subtopology("0", ["orders"])]}
        return self.record(RecordType.STREAMS_GROUP_TOPOLOGY, value)

    def streams_target(
        self, member_id: str, active: Partitions, standby: Partitions | None = None
    ) -> CoordinatorRecord:
        value = {"activeTasks": tasks(active), "standbyTasks": tasks(standby or {}), "warmupTasks": []}
        return self.record(RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER, value, memberId=member_id)

    def streams_current(
        self,
        member_id: str,
        epoch: int,
        active: Partitions | None = None,
        standby: Partitions | None = None,
        revoking: Partitions | None = None,
        state: int = 1,
    ) -> CoordinatorRecord:
        value = {
            "memberEpoch": epoch,
            "previousMemberEpoch": self.was_at(member_id, epoch),
            "state": state,
            "activeTasks": tasks(active or {}),
            "standbyTasks": tasks(standby or {}),
            "warmupTasks": [],
            "activeTasksPendingRevocation": tasks(revoking or {}),
            "standbyTasksPendingRevocation": [],
            "warmupTasksPendingRevocation": [],
        }
        return self.record(RecordType.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT, value, memberId=member_id)


def at_once(records: list[CoordinatorRecord]) -> list[CoordinatorRecord]:
    """The records as one operation of the coordinator: one batch, one time."""
    first = records[0].at
    return [
        record._replace(batch=first.offset, at=record.at._replace(timestamp_ms=first.timestamp_ms))
        for record in records
    ]


def without_times(records: Iterable[CoordinatorRecord]) -> list[CoordinatorRecord]:
    """The records as in a dump without timestamps and batches: nothing tells what was written together."""
    return [record._replace(at=record.at._replace(timestamp_ms=-1), batch=-1) for record in records]


def topic_partitions(partitions: Partitions) -> list[Fields]:
    return [{"topicId": topic_id, "partitions": numbers} for topic_id, numbers in partitions.items()]


def tasks(by_subtopology: Partitions) -> list[Fields]:
    return [{"subtopologyId": name, "partitions": numbers} for name, numbers in by_subtopology.items()]


def classic_member(member_id: str, subscription: bytes = b"", assignment: bytes = b"", **more: Any) -> Fields:
    return {
        "memberId": member_id,
        "groupInstanceId": None,
        "clientId": f"client-{member_id}",
        "clientHost": "/10.0.0.1",
        "rebalanceTimeout": 300_000,
        "sessionTimeout": 45_000,
        "subscription": subscription,
        "assignment": assignment,
    } | more


def consumer_member(member_id: str, assigned: list[int], owned: list[int], generation: int = 1) -> Fields:
    """A member of a classic group of consumers that reads topic t, and says what it has of the generation."""
    asked = {
        "topics": ["t"],
        "userData": None,
        "ownedPartitions": [{"topic": "t", "partitions": owned}],
        "generationId": generation,
        "rackId": None,
    }
    given = {"assignedPartitions": [{"topic": "t", "partitions": assigned}], "userData": None}
    return classic_member(
        member_id,
        encode_blob("ConsumerProtocolSubscription", 3, asked),
        encode_blob("ConsumerProtocolAssignment", 3, given),
    )


def subtopology(subtopology_id: str, sources: list[str], **more: Any) -> Fields:
    return {
        "subtopologyId": subtopology_id,
        "sourceTopics": sources,
        "sourceTopicRegex": [],
        "stateChangelogTopics": [],
        "repartitionSinkTopics": [],
        "repartitionSourceTopics": [],
        "copartitionGroups": [],
    } | more


def internal_topic(name: str, partitions: int = 0) -> Fields:
    return {"name": name, "partitions": partitions, "replicationFactor": 0, "topicConfigs": []}

"""Hand-built group logs: one call a coordinator operation, all its records in one batch and at one time."""

from coordinator_core.cluster.image import Topic
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.groups.group import Group
from coordinator_core.history.coverage import Coverage
from coordinator_core.history.rows import AssignmentRow, GroupEpochRow, HistoryRow, MembershipRow, RebalanceRow
from coordinator_core.records import CoordinatorRecord, Fields, LogPosition, RecordType
from coordinator_core.wire.embedded import encode_blob
from tests.core import builders
from tests.core.whole_log import fold

GROUP = "g"
A, B = "5J6Vb5ZiR3aDu5l2a3l1Ew", "AAAAAAAAAAAAAAAAAAAAAQ"
Change = tuple[RecordType, Fields, Fields | None]


class GroupLog:
    """The records of one group, and the rows that they make."""

    def __init__(self, offset: int = 0, time_ms: int = 1000) -> None:
        self.records: list[CoordinatorRecord] = []
        self.offset = offset
        self.time_ms = time_ms

    def write(self, *changes: Change, after_ms: int = 1000) -> "GroupLog":
        self.time_ms += after_ms
        batch = self.offset
        for record_type, key, value in changes:
            at = LogPosition(0, self.offset, self.time_ms)
            self.records.append(CoordinatorRecord(at, int(record_type), {"groupId": GROUP, **key}, value, 0, batch))
            self.offset += 1
        return self

    def skip(self, offsets: int) -> "GroupLog":
        self.offset += offsets
        return self

    def rows(self, topics: TopicHistory | None = None, coverage: Coverage | None = None) -> list[HistoryRow]:
        return list(fold(self.records, Group(GROUP), topics, coverage))

    def violations(self) -> list[str]:
        """The rules that replay sees broken."""
        group = Group(GROUP)
        return [str(each.rule) for record in self.records for each in group.apply(record)]

    def rebalances(self, topics: TopicHistory | None = None, coverage: Coverage | None = None) -> list[RebalanceRow]:
        return [row for row in self.rows(topics, coverage) if isinstance(row, RebalanceRow)]

    def epochs(self, topics: TopicHistory | None = None) -> list[GroupEpochRow]:
        return [row for row in self.rows(topics) if isinstance(row, GroupEpochRow)]

    def memberships(self) -> dict[str, MembershipRow]:
        return {row.member_id: row for row in self.rows() if isinstance(row, MembershipRow)}

    def assignments(self, kind: str = "current") -> list[AssignmentRow]:
        return [row for row in self.rows() if isinstance(row, AssignmentRow) and row.kind == kind]


def without_times(log: GroupLog) -> GroupLog:
    """The log as in a dump without timestamps and batches."""
    log.records = builders.without_times(log.records)
    return log


def existing(**topics: int) -> TopicHistory:
    """Topics that are there all the time, with so many partitions; the id of topic ``t`` is A."""
    history = TopicHistory()
    history.open_version(LogPosition(0, 0, 0))
    for name, partitions in topics.items():
        history.put_topic(Topic(name, A if name == "t" else B, partitions))
    history.last_seen_ms = 10**15
    return history


def kinds(row: RebalanceRow | GroupEpochRow) -> list[str]:
    return [cause.kind for cause in row.causes]


# --- consumer groups -------------------------------------------------------------------------------------------------


def member(name: str, *topics: str, instance: str | None = None, **fields: object) -> Change:
    value = {
        "instanceId": instance,
        "rackId": None,
        "clientId": f"client-{name}",
        "clientHost": "/127.0.0.1",
        "subscribedTopicNames": list(topics),
        "subscribedTopicRegex": "",
        "rebalanceTimeoutMs": 5000,
        "serverAssignor": "uniform",
        "classicMemberMetadata": None,
        **fields,
    }
    return RecordType.CONSUMER_GROUP_MEMBER_METADATA, {"memberId": name}, value


def epoch(number: int, metadata_hash: int = 7) -> Change:
    return RecordType.CONSUMER_GROUP_METADATA, {}, {"epoch": number, "metadataHash": metadata_hash}


def target(name: str, *partitions: int, topic: str = A) -> Change:
    value = {"topicPartitions": [{"topicId": topic, "partitions": list(partitions)}] if partitions else []}
    return RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER, {"memberId": name}, value


def target_epoch(number: int) -> Change:
    value = {"assignmentEpoch": number, "assignmentTimestamp": 0}
    return RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA, {}, value


def current(name: str, at_epoch: int, *partitions: int, state: int = 0, revoking: tuple[int, ...] = ()) -> Change:
    value = {
        "memberEpoch": at_epoch,
        "previousMemberEpoch": at_epoch - 1,
        "state": state,
        "assignedPartitions": _partitions(partitions),
        "partitionsPendingRevocation": _partitions(revoking),
    }
    return RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT, {"memberId": name}, value


def _partitions(partitions: tuple[int, ...]) -> list[Fields]:
    epochs = [1] * len(partitions)
    return [{"topicId": A, "partitions": list(partitions), "assignmentEpochs": epochs}] if partitions else []


def gone(name: str) -> tuple[Change, Change, Change]:
    """The tombstones of a member, in Kafka's order."""
    key = {"memberId": name}
    return (
        (RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT, key, None),
        (RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER, key, None),
        (RecordType.CONSUMER_GROUP_MEMBER_METADATA, key, None),
    )


def group_gone() -> tuple[Change, Change]:
    return (
        (RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA, {}, None),
        (RecordType.CONSUMER_GROUP_METADATA, {}, None),
    )


def commit(topic: str, partition: int) -> Change:
    key = {"group": GROUP, "topic": topic, "partition": partition}
    return RecordType.OFFSET_COMMIT, key, {"offset": 1, "topicId": A}


def alone(log: GroupLog) -> GroupLog:
    """One member with all four partitions of a topic."""
    return log.write(
        member("m1", "t"), epoch(2), target("m1", 0, 1, 2, 3), target_epoch(2), current("m1", 2, 0, 1, 2, 3)
    )


# --- classic groups --------------------------------------------------------------------------------------------------


def generation(number: int, members: dict[str, Fields], protocol: str | None = "range", **fields: object) -> Change:
    value = {
        "protocolType": "consumer",
        "generation": number,
        "protocol": protocol if members else None,
        "leader": next(iter(members), None),
        "currentStateTimestamp": -1,
        "members": [{"memberId": name, **of} for name, of in members.items()],
        **fields,
    }
    return RecordType.GROUP_METADATA, {"group": GROUP}, value


def classic(
    assigned: dict[str, list[int]],
    *topics: str,
    instance: str | None = None,
    owned: dict[str, list[int]] | None = None,
    rack: str | None = None,
) -> Fields:
    """A member of a classic group that reads ``topics`` (by default those it is given) and ``owned`` something."""
    names = list(topics or assigned)
    had = _listed(owned or {})
    subscription = {"topics": names, "userData": None, "ownedPartitions": had, "generationId": -1, "rackId": rack}
    partitions = _listed(assigned)
    return _classic_member(
        encode_blob("ConsumerProtocolSubscription", 3, subscription),
        encode_blob("ConsumerProtocolAssignment", 3, {"assignedPartitions": partitions, "userData": None}),
        instance,
    )


def _listed(partitions: dict[str, list[int]]) -> list[Fields]:
    return [{"topic": topic, "partitions": numbers} for topic, numbers in partitions.items()]


def _classic_member(subscription: bytes, assignment: bytes, instance: str | None = None) -> Fields:
    return {
        "groupInstanceId": instance,
        "clientId": "c",
        "clientHost": "/127.0.0.1",
        "rebalanceTimeout": 60000,
        "sessionTimeout": 10000,
        "subscription": subscription,
        "assignment": assignment,
    }


def eager_worker(new: dict[str, list[int]]) -> Fields:
    """A Connect worker of the eager protocol, which has nothing when it joins: what it gets."""
    work = [{"connector": name, "tasks": tasks} for name, tasks in new.items()]
    assignment = {"error": 0, "leader": "w1", "leaderUrl": "u", "configOffset": 1, "assignment": work}
    metadata = {"url": "u", "configOffset": 1}
    return _classic_member(
        encode_blob("ConnectProtocolMetadata", 0, metadata), encode_blob("ConnectProtocolAssignment", 0, assignment)
    )


def worker(
    offset: int,
    new: dict[str, list[int]] | None,
    had: dict[str, list[int]] | None = None,
    revoked: dict[str, list[int]] | None = None,
    delay: int = 0,
    error: int = 0,
) -> Fields:
    """A Connect worker (incremental): what it had when it joined, what it gets and what it has to give up.

    None is a null list.
    """

    def work(of: dict[str, list[int]] | None) -> list[Fields] | None:
        return None if of is None else [{"connector": name, "tasks": tasks} for name, tasks in of.items()]

    def assignment(new: dict[str, list[int]] | None, revoked: dict[str, list[int]] | None, delay: int) -> bytes:
        fields = {"error": error, "leader": "w1", "leaderUrl": "u", "configOffset": offset, "delay": delay}
        return encode_blob(
            "ConnectProtocolAssignment", 1, {**fields, "assignment": work(new), "revoked": work(revoked)}
        )

    metadata = {"url": "u", "configOffset": offset, "allocation": assignment(had, None, 0)}
    return _classic_member(encode_blob("ConnectProtocolMetadata", 1, metadata), assignment(new, revoked, delay))

"""Record types of the coordinator logs, and a decoded record with its log coordinates."""

from enum import Enum, IntEnum
from typing import Any, Final, Generic, NamedTuple

from typing_extensions import TypeVar

Fields = dict[str, Any]
"""A decoded key or value: Kafka's JSON field names to plain Python values."""

KeyT = TypeVar("KeyT", covariant=True, default=object)
ValueT = TypeVar("ValueT", covariant=True, default=object)


class Family(Enum):
    """The log that a record comes from: key versions have a different meaning in each log."""

    GROUP = "group_coordinator"
    SHARE = "share_coordinator"
    METADATA = "cluster_metadata"
    CONNECT = "connect_group"


GROUP_LOG: Final = "__consumer_offsets"
SHARE_LOG: Final = "__share_group_state"
CONNECT_LOG: Final = "__worker_offsets"
LOG_TOPICS = {
    Family.GROUP: GROUP_LOG,
    Family.SHARE: SHARE_LOG,
    Family.METADATA: "__cluster_metadata",
    Family.CONNECT: CONNECT_LOG,
}
"""The topics in which these logs lie."""


class RecordType(IntEnum):
    """Record types of ``__consumer_offsets`` by the version field of their key (Kafka 4.3 CoordinatorRecordType; 18 is
    of KIP-1071).
    """

    LEGACY_OFFSET_COMMIT = 0
    OFFSET_COMMIT = 1
    GROUP_METADATA = 2
    CONSUMER_GROUP_METADATA = 3
    CONSUMER_GROUP_PARTITION_METADATA = 4
    CONSUMER_GROUP_MEMBER_METADATA = 5
    CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA = 6
    CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER = 7
    CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT = 8
    SHARE_GROUP_MEMBER_METADATA = 10
    SHARE_GROUP_METADATA = 11
    SHARE_GROUP_TARGET_ASSIGNMENT_METADATA = 12
    SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER = 13
    SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT = 14
    SHARE_GROUP_STATE_PARTITION_METADATA = 15
    CONSUMER_GROUP_REGULAR_EXPRESSION = 16
    STREAMS_GROUP_METADATA = 17
    STREAMS_GROUP_PARTITION_METADATA = 18
    STREAMS_GROUP_MEMBER_METADATA = 19
    STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA = 20
    STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER = 21
    STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT = 22
    STREAMS_GROUP_TOPOLOGY = 23


COMMIT_TYPES: Final = (RecordType.LEGACY_OFFSET_COMMIT, RecordType.OFFSET_COMMIT)
"""The types of offset commits."""


class ConnectRecordType(IntEnum):
    """Record types of the proposed Connect group's own topic, ``__worker_offsets`` (Connect on KIP-848)."""

    GROUP_METADATA = 3
    CONNECTORS_TASKS_METADATA = 4
    MEMBER_METADATA = 5
    TARGET_ASSIGNMENT = 6
    CURRENT_MEMBER_ASSIGNMENT = 7
    CONFIGURATION = 8


class MetadataRecordType(IntEnum):
    """Record types of ``__cluster_metadata`` (KRaft) that this software reads, by their API key (Kafka 4.4)."""

    REGISTER_BROKER = 0
    UNREGISTER_BROKER = 1
    TOPIC = 2
    PARTITION = 3
    CONFIG = 4
    PARTITION_CHANGE = 5
    FENCE_BROKER = 7
    UNFENCE_BROKER = 8
    REMOVE_TOPIC = 9
    FEATURE_LEVEL = 12
    PRODUCER_IDS = 15
    BROKER_REGISTRATION_CHANGE = 17
    NO_OP = 20
    ZK_MIGRATION_STATE = 21
    BEGIN_TRANSACTION = 23
    END_TRANSACTION = 24
    ABORT_TRANSACTION = 25
    REGISTER_CONTROLLER = 27
    CLEAR_ELR = 28
    UNREGISTER_CONTROLLER = 29


class LogPosition(NamedTuple):
    """The place of a record: log partition, offset, and the record's timestamp in milliseconds (-1: none)."""

    partition: int
    offset: int
    timestamp_ms: int


def elapsed_ms(begin_ms: int, end_ms: int) -> int | None:
    """Return how long it took from one timestamp to another, in ms; None: one of them is that of no time."""
    return end_ms - begin_ms if begin_ms >= 0 and end_ms >= 0 else None


def group_of_key(key: Any) -> str:
    """Return the group that a decoded key names: field ``group`` in classic keys, ``groupId`` in all others."""
    group: str = key["groupId"] if "groupId" in key else key["group"]
    return group


class CoordinatorRecord(NamedTuple, Generic[KeyT, ValueT]):
    """One decoded record of a coordinator log.

    ``value`` is None for a tombstone. ``batch`` is the base offset of the record batch that held it, or -1 if the dump
    does not contain it (a dump by a consumer has no batch bounds).

    ``coordinator_core.record_fields`` has a type of this record for each record type; only with it can the fields of
    key and value be read.
    """

    at: LogPosition
    type: int
    key: KeyT
    value: ValueT | None
    value_version: int | None = None
    batch: int = -1

    @property
    def group_id(self) -> str:
        """The group that the record is about (field ``group`` in classic keys, ``groupId`` in all others)."""
        return group_of_key(self.key)

    @property
    def member_id(self) -> str | None:
        """The member that the record is about, None where it is about the group."""
        key: Any = self.key
        member_id: str | None = key.get("memberId")
        return member_id


AnyRecord = CoordinatorRecord[Any, Any]
"""A record whose type is not yet known: for code that hands records to the functions of their types."""

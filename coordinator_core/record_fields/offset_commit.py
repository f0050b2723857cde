"""Fields of the offset commit records. Made by ``python -m jobs.typed_records``; change ``schemas/`` instead."""

from typing import Literal, NotRequired, final

from coordinator_core.record_fields.beyond_schema import TrailingBytes, UnknownTaggedFields
from coordinator_core.records import CoordinatorRecord


@final
class LegacyOffsetCommitKey(TrailingBytes):
    """Key of LEGACY_OFFSET_COMMIT."""

    group: str  # Group id.
    topic: str  # Topic name.
    partition: int  # Partition number.


@final
class LegacyOffsetCommitValue(TrailingBytes):
    """An offset commit of the first format. Kafka 4.3 still reads it and gives the key a type of its own."""

    offset: int  # Committed offset: the next record to read; -1 is a commit without a position.
    metadata: str  # Text that the client keeps with the offset.
    commitTimestamp: int  # When the broker took the commit, ms.
    _type: NotRequired[Literal["LegacyOffsetCommitValue"]]  # In no record: it sets this type apart.


LegacyOffsetCommitRecord = CoordinatorRecord[LegacyOffsetCommitKey, LegacyOffsetCommitValue]


@final
class OffsetCommitKey(TrailingBytes):
    """Key of OFFSET_COMMIT."""

    group: str  # Group id.
    topic: str  # Topic name.
    partition: int  # Partition number.


@final
class OffsetCommitValue(TrailingBytes, UnknownTaggedFields):
    """The committed offset of one group and partition. A tombstone deletes it."""

    offset: int  # Committed offset: the next record to read; -1 is a commit without a position.
    leaderEpoch: NotRequired[int]  # Leader epoch of the last record read, -1 unknown. In versions 3 to 4.
    metadata: str  # Text that the client keeps with the offset.
    commitTimestamp: int  # When the broker took the commit, ms.
    # When the offset expires, ms; only with a retention time in the request. In version 1.
    expireTimestamp: NotRequired[int]
    # Id of the topic; absent in transactional commits and where the broker knew none. Tagged: absent unless it was
    # written.
    topicId: NotRequired[str]
    _type: NotRequired[Literal["OffsetCommitValue"]]  # In no record: it sets this type apart.


OffsetCommitRecord = CoordinatorRecord[OffsetCommitKey, OffsetCommitValue]

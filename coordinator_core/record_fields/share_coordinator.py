"""Fields of the share coordinator records. Made by ``python -m jobs.typed_records``; change ``schemas/`` instead."""

from typing import Literal, NotRequired, final

from coordinator_core.record_fields.beyond_schema import TrailingBytes, UnknownTaggedFields
from coordinator_core.records import CoordinatorRecord


@final
class ShareSnapshotKey(TrailingBytes):
    """Key of SHARE_SNAPSHOT."""

    groupId: str  # Group id.
    topicId: str  # Topic id.
    partition: int  # Partition number.


@final
class ShareSnapshotStateBatch(UnknownTaggedFields):
    """Struct of ``stateBatches``."""

    firstOffset: int  # First offset.
    lastOffset: int  # Last offset.
    deliveryState: int  # 0 available, 2 acknowledged, 3 archiving, 4 archived.
    deliveryCount: int  # How often delivered.


@final
class ShareSnapshotValue(TrailingBytes, UnknownTaggedFields):
    """The full delivery state of one share-partition."""

    snapshotEpoch: int  # Epoch of the snapshot; updates carry that of the snapshot they follow.
    stateEpoch: int  # Epoch of the state.
    leaderEpoch: int  # Leader epoch of the partition.
    startOffset: int  # Share-partition start offset; -1 in an update: unchanged.
    # Records from the start offset on whose delivery is done, -1 unknown (KIP-1226). Tagged: absent unless it was
    # written.
    deliveryCompleteCount: NotRequired[int]
    createTimestamp: NotRequired[int]  # When the snapshot was first made, ms.
    writeTimestamp: NotRequired[int]  # When it was written, ms.
    stateBatches: list[ShareSnapshotStateBatch]  # Runs of offsets in one delivery state.
    _type: NotRequired[Literal["ShareSnapshotValue"]]  # In no record: it sets this type apart.


ShareSnapshotRecord = CoordinatorRecord[ShareSnapshotKey, ShareSnapshotValue]


@final
class ShareUpdateKey(TrailingBytes):
    """Key of SHARE_UPDATE."""

    groupId: str  # Group id.
    topicId: str  # Topic id.
    partition: int  # Partition number.


@final
class ShareUpdateStateBatch(UnknownTaggedFields):
    """Struct of ``stateBatches``."""

    firstOffset: int  # First offset.
    lastOffset: int  # Last offset.
    deliveryState: int  # 0 available, 2 acknowledged, 3 archiving, 4 archived.
    deliveryCount: int  # How often delivered.


@final
class ShareUpdateValue(TrailingBytes, UnknownTaggedFields):
    """A change of the delivery state since the last snapshot."""

    snapshotEpoch: int  # Epoch of the snapshot; updates carry that of the snapshot they follow.
    leaderEpoch: int  # Leader epoch of the partition.
    startOffset: int  # Share-partition start offset; -1 in an update: unchanged.
    # Records from the start offset on whose delivery is done, -1 unknown (KIP-1226). Tagged: absent unless it was
    # written.
    deliveryCompleteCount: NotRequired[int]
    stateBatches: list[ShareUpdateStateBatch]  # Runs of offsets in one delivery state.
    _type: NotRequired[Literal["ShareUpdateValue"]]  # In no record: it sets this type apart.


ShareUpdateRecord = CoordinatorRecord[ShareUpdateKey, ShareUpdateValue]

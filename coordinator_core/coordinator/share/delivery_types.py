"""What the leader of a share partition takes and gives: settings, deliveries, acknowledgements, state to be written."""

from enum import IntEnum
from typing import NamedTuple

from coordinator_core.coordinator.config import GroupConfig
from coordinator_core.groups.share.delivery import StateBatch

FEWEST_BEFORE_THROTTLING = 2
READ_COMMITTED = "read_committed"


class Acknowledge(IntEnum):
    """What a member says about a record. ``GAP``: there is no record at that offset."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4


class DeliverySettings(NamedTuple):
    """The settings of a group that its share partitions go by."""

    lock_ms: int = 30_000
    delivery_limit: int = 5
    most_locks: int = 2_000
    may_renew: bool = True
    reads_committed: bool = False
    """``share.isolation.level`` is ``read_committed``: no member gets a record of a transaction that was aborted."""

    @classmethod
    def of(cls, config: GroupConfig) -> "DeliverySettings":
        """Return them from the settings of a group."""
        return cls(
            config.share_record_lock_duration_ms,
            config.share_delivery_count_limit,
            config.share_partition_max_record_locks,
            config.share_renew_acknowledge_enable,
            config.share_isolation_level == READ_COMMITTED,
        )

    @property
    def throttled_from(self) -> int:
        """The delivery count from which on fewer records are delivered at a time."""
        return max(FEWEST_BEFORE_THROTTLING, -(-self.delivery_limit // 2))


class Delivery(NamedTuple):
    """Offsets that a member gets, for the ``delivery_count``th time."""

    first: int
    last: int
    delivery_count: int

    @property
    def records(self) -> int:
        """The number of its offsets."""
        return self.last - self.first + 1


class Acknowledgement(NamedTuple):
    """What a member says of offsets ``first`` to ``last``: one type for all of them, or one for each."""

    first: int
    last: int
    types: tuple[int, ...]


class StateWrite(NamedTuple):
    """What the leader has the share coordinator write: start offset, settled records from there on, and batches.

    Kafka has one batch for each offset where offsets have their own states; ``is_split`` says where that is so.
    """

    start_offset: int
    delivery_complete_count: int
    batches: list[StateBatch]
    is_split: list[bool]

    @property
    def pieces(self) -> list[StateBatch]:
        """The batches as Kafka has them."""
        return [
            batch._replace(first=first, last=last)
            for batch, is_split in zip(self.batches, self.is_split, strict=True)
            # Split: each offset by itself.
            for first, last in ([(n, n) for n in range(batch.first, batch.last + 1)] if is_split else [batch[:2]])
        ]


class LogBatch(NamedTuple):
    """A record batch of the data partition; ``is_aborted``: of a transaction that was aborted."""

    first: int
    last: int
    is_aborted: bool = False

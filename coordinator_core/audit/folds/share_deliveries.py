"""What findings need of the deliveries of a share partition: the rows of ``share_partitions`` summed up."""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, NamedTuple

from coordinator_core.history.rows import OffsetRange, SharePartitionRow, ShareWrite
from coordinator_core.records import LogPosition

BEGINNINGS = (ShareWrite.INITIALIZED, ShareWrite.ALTERED, ShareWrite.FIRST_SEEN)
"""Writes with which the state of a share partition begins."""
MOST_GIVEN_UP = 1_000
"""How many ranges of given up offsets of one share partition are kept: the latest ones."""


class GivenUp(NamedTuple):
    """Offsets that one record of the share state log archived, or sent to the dead-letter queue."""

    at: Annotated[LogPosition, "the record"]
    first: Annotated[int, "first offset"]
    last: Annotated[int, "last offset"]
    delivery_count: Annotated[int, "how often they had been delivered"]
    delivery_limit: Annotated[int | None, "the group's delivery limit then; null: the metadata log has none"]
    dead_letter: Annotated[bool, "they were sent to the dead-letter queue: no marker of a transaction is"]


class ShareDelivery(NamedTuple):
    """The deliveries of one share partition since its state was first seen.

    A delivery has ended when its record was acknowledged, given up or given back.
    """

    topic: Annotated[str | None, "topic name; null: no metadata log names the topic id"]
    topic_id: Annotated[str, "topic id"]
    partition: Annotated[int, "partition"]
    accepted: Annotated[int, "records acknowledged"]
    ended: Annotated[int, "deliveries that ended"]
    redelivered: Annotated[int, "deliveries that ended, of records that had been delivered before"]
    most_delivered: Annotated[int, "highest delivery count"]
    archived: Annotated[int, "records archived, or sent to the dead-letter queue"]
    given_up: Annotated[tuple[GivenUp, ...], "offsets given up, the latest in log order"]
    unqueued: Annotated[int, "records archived that the dead-letter queue could not take"]
    unqueued_why: Annotated[str | None, "why it could not take the last of them"]
    first_unqueued: Annotated[LogPosition | None, "the record that archived the first of them"]
    last_unqueued: Annotated[LogPosition | None, "the record that archived the last of them"]
    first_redelivery: Annotated[LogPosition | None, "the first record of a redelivery that ended"]
    last_redelivery: Annotated[LogPosition | None, "the last one"]
    current: Annotated[SharePartitionRow | None, "what holds now; null: the state was deleted"]
    began: Annotated[LogPosition, "the record with which the newest state began, or the first one that is known of it"]


@dataclass(slots=True)
class DeliverySum:
    """The rows of one share partition summed up; ``add`` takes them in the order of the log."""

    topic: str | None
    topic_id: str
    partition: int
    first: LogPosition
    accepted: int = 0
    released: int = 0
    redelivered: int = 0
    most_delivered: int = 0
    archived: int = 0
    given_up: list[GivenUp] = field(default_factory=list)
    unqueued: int = 0
    unqueued_why: str | None = None
    first_unqueued: LogPosition | None = None
    last_unqueued: LogPosition | None = None
    first_redelivery: LogPosition | None = None
    last_redelivery: LogPosition | None = None
    began: LogPosition | None = None

    @classmethod
    def before(cls, row: SharePartitionRow) -> "DeliverySum":
        """Return the sum of no rows, of the share partition of this first one."""
        return cls(row.topic, row.topic_id, row.partition, row.since)

    def add(self, row: SharePartitionRow) -> None:
        """Take the next row."""
        self.topic = row.topic
        self.accepted += row.accepted_now
        self.archived += _records(row.given_up_now)
        self.released += _records(row.released_now)
        self.redelivered += row.redelivered_now
        self.most_delivered = max((self.most_delivered, *(count.delivery_count for count in row.counts)))
        self.given_up += (
            GivenUp(
                row.since, batch.first, batch.last, batch.delivery_count, row.delivery_limit, batch in row.archiving_now
            )
            for batch in row.given_up_now
        )
        del self.given_up[:-MOST_GIVEN_UP]
        if row.unqueued_now:
            self.unqueued += _records(row.unqueued_now)
            self.unqueued_why = row.unqueued_why
            self.first_unqueued = self.first_unqueued or row.since
            self.last_unqueued = row.since
        if row.redelivered_now:
            self.first_redelivery = self.first_redelivery or row.since
            self.last_redelivery = row.since
        if row.write in BEGINNINGS:
            self.began = row.since

    def delivery(self, last: SharePartitionRow | None) -> ShareDelivery:
        """Return the sum with what holds after the ``last`` row; None: the state was deleted."""
        return ShareDelivery(
            topic=self.topic,
            topic_id=self.topic_id,
            partition=self.partition,
            accepted=self.accepted,
            ended=self.accepted + self.archived + self.released,
            redelivered=self.redelivered,
            most_delivered=self.most_delivered,
            archived=self.archived,
            given_up=tuple(self.given_up),
            unqueued=self.unqueued,
            unqueued_why=self.unqueued_why,
            first_unqueued=self.first_unqueued,
            last_unqueued=self.last_unqueued,
            first_redelivery=self.first_redelivery,
            last_redelivery=self.last_redelivery,
            current=last if last is not None and last.is_open else None,
            began=self.began or self.first,
        )


def share_deliveries(rows: Iterable[SharePartitionRow]) -> Iterator[ShareDelivery]:
    """Sum the rows of a group up, by share partition."""
    ordered = sorted(rows, key=lambda row: (row.topic_id, row.partition, row.since.offset))
    for _, some in itertools.groupby(ordered, lambda row: (row.topic_id, row.partition)):
        of_partition = list(some)
        total = DeliverySum.before(of_partition[0])
        for row in of_partition:
            total.add(row)
        yield total.delivery(of_partition[-1])


def _records(ranges: Iterable[OffsetRange]) -> int:
    return sum(max(0, offsets.last - offsets.first + 1) for offsets in ranges)  # a broken record has its bounds swapped

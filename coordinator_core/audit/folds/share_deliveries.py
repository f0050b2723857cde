"""What findings need of the deliveries of a share partition: the rows of ``share_partitions`` summed up."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, NamedTuple

from coordinator_core.history.share_rows import OffsetRange, SharePartitionRow, ShareWrite
from coordinator_core.records import LogPosition

BEGINNINGS = (ShareWrite.INITIALIZED, ShareWrite.ALTERED, ShareWrite.FIRST_SEEN)
"""Writes with which the state of a share partition begins."""
MOST_GIVEN_UP = 1_000
"""How many ranges of archived offsets of one share partition are kept: the latest ones."""


class GivenUp(NamedTuple):
    """Offsets that one record of the share state log archived."""

    at: Annotated[LogPosition, "the record"]
    first: Annotated[int, "first offset"]
    last: Annotated[int, "last offset"]
    delivery_count: Annotated[int, "how often they had been delivered"]
    delivery_limit: Annotated[int | None, "the group's delivery limit then; null: the metadata log has none"]


class ShareDelivery(NamedTuple):
    """The deliveries of one share partition since its state was first seen.

    A delivery has ended when its record was acknowledged, archived or given back.
    """

    topic: Annotated[str | None, "topic name; null: no metadata log names the topic id"]
    topic_id: Annotated[str, "topic id"]
    partition: Annotated[int, "partition"]
    accepted: Annotated[int, "records acknowledged"]
    ended: Annotated[int, "deliveries that ended"]
    redelivered: Annotated[int, "deliveries that ended, of records that had been delivered before"]
    most_delivered: Annotated[int, "highest delivery count"]
    archived: Annotated[int, "records archived"]
    given_up: Annotated[tuple[GivenUp, ...], "archived offsets, the latest in log order"]
    first_redelivery: Annotated[LogPosition | None, "the first record of a redelivery that ended"]
    last_redelivery: Annotated[LogPosition | None, "the last one"]
    current: Annotated[SharePartitionRow | None, "what holds now; null: the state was deleted"]
    began: Annotated[LogPosition, "the record with which the newest state began, or the first one that is known of it"]


def share_deliveries(rows: Iterable[SharePartitionRow]) -> Iterator[ShareDelivery]:
    """Sum the rows of a group up, by share partition."""
    ordered = sorted(rows, key=lambda row: (row.topic_id, row.partition, row.since.offset))
    for _, mine in itertools.groupby(ordered, lambda row: (row.topic_id, row.partition)):
        yield _delivery(list(mine))


def _delivery(rows: Sequence[SharePartitionRow]) -> ShareDelivery:
    last = rows[-1]
    given_up = [
        GivenUp(row.since, each.first, each.last, each.delivery_count, row.delivery_limit)
        for row in rows
        for each in row.archived_now
    ]
    accepted, archived = sum(row.accepted_now for row in rows), sum(_records(row.archived_now) for row in rows)
    redelivered = [row for row in rows if row.redelivered_now]
    return ShareDelivery(
        topic=last.topic,
        topic_id=last.topic_id,
        partition=last.partition,
        accepted=accepted,
        ended=accepted + archived + sum(_records(row.released_now) for row in rows),
        redelivered=sum(row.redelivered_now for row in rows),
        most_delivered=max((each.delivery_count for row in rows for each in row.counts), default=0),
        archived=archived,
        given_up=tuple(given_up[-MOST_GIVEN_UP:]),
        first_redelivery=redelivered[0].since if redelivered else None,
        last_redelivery=redelivered[-1].since if redelivered else None,
        current=last if last.is_open else None,
        began=next((row.since for row in reversed(rows) if row.write in BEGINNINGS), rows[0].since),
    )


def _records(ranges: Iterable[OffsetRange]) -> int:
    return sum(max(0, each.last - each.first + 1) for each in ranges)  # a broken record has its bounds swapped

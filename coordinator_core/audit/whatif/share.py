"""What-if for share groups: another delivery limit (KIP-932, ``share.delivery.count.limit``).

What members do with a record does not depend on the limit, up to the delivery that was the last one. So the log tells
what a lower limit gives up. What a delivery beyond the limit in force would have led to, no log tells.
"""

from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

from coordinator_core.history.rows import OffsetRange, SharePartitionRow

LOWEST_LIMIT = 2
"""The lowest delivery limit that brokers take (``group.share.min.delivery.count.limit``)."""


class GivenUpRecords(NamedTuple):
    """Records that a group gives up after their second delivery or a later one.

    ``accepted`` of them a later delivery did settle, or may still settle. ``undecided`` is how many others would get
    another delivery, whose end is unknown.
    """

    given_up: int
    accepted: int
    undecided: int


class DeliveryComparison(NamedTuple):
    """What a group gave up, and what it would have given up. ``is_whole``: no record of its share state is missing."""

    actual: GivenUpRecords
    hypothetical: GivenUpRecords
    is_whole: bool


def with_delivery_limit(rows: Iterable[SharePartitionRow], limit: int) -> DeliveryComparison:
    """Return what the rows of a group say of another delivery limit, which is at least ``LOWEST_LIMIT``.

    Offsets that were archived at their first delivery are left out: rejected, or without a record.
    """
    ordered = sorted(rows, key=lambda row: (row.topic_id, row.partition, row.since.offset))
    actual = given_up = accepted = undecided = 0
    for _, rows_of_one in groupby(ordered, lambda row: (row.topic_id, row.partition)):
        of_partition = list(rows_of_one)
        archived = [(row, span) for row in of_partition for span in row.given_up_now if span.delivery_count > 1]
        # A lower limit ends a record at its first release with that count; one archived after more deliveries, too.
        # An offset may be in several of these ranges: merged, each counts once.
        released = [span for row in of_partition for span in row.released_now if span.delivery_count >= limit]
        late = [span for _, span in archived if span.delivery_count > limit]
        sooner = _records(_merged([*released, *late]))
        # Without a limit in the metadata log each delivery may have been the last.
        last = (span for row, span in archived if span.delivery_count >= (row.delivery_limit or 0))
        more = [span for span in last if span.delivery_count < limit]
        actual += _records(span for _, span in archived)
        given_up += sooner + _records(span for _, span in archived if span.delivery_count <= limit) - _records(more)
        # What would end sooner and was not archived later was settled, or is still out.
        accepted += sooner - _records(_merged(late))
        undecided += _records(more)
    is_whole = all(row.history_complete for row in ordered)
    return DeliveryComparison(GivenUpRecords(actual, 0, 0), GivenUpRecords(given_up, accepted, undecided), is_whole)


def _merged(ranges: Iterable[OffsetRange]) -> list[OffsetRange]:
    """Each offset once."""
    merged: list[OffsetRange] = []
    for span in sorted(ranges):
        if merged and span.first <= merged[-1].last + 1:
            merged[-1] = merged[-1]._replace(last=max(merged[-1].last, span.last))
        else:
            merged.append(span)
    return merged


def _records(ranges: Iterable[OffsetRange]) -> int:
    return sum(span.last - span.first + 1 for span in ranges)

"""Groups that only committed offsets, and have none left: whether they are still there.

A coordinator of Kafka 4.0 or later ends such a group by a tombstone: in the operation that removes the last expired
offset, or at the next cleanup (``offsets.retention.check.interval.ms``, 10 minutes) where a request or the deletion of
a topic removed it. The coordinator before (GroupMetadataManager.cleanupGroupMetadata) forgets it without a record: a
group of generation 0 has none in the log.
"""

from collections.abc import Callable, Iterable, Iterator

from coordinator_core.cluster.snapshot_settings import FIRST_OF_4_0
from coordinator_core.groups.proven_state import GroupThen


def without_forgotten(thens: Iterable[GroupThen], oldest_broker: Callable[[], int | None]) -> Iterator[GroupThen]:
    """Yield the groups that are there or may be, without those that the coordinator has forgotten.

    ``oldest_broker`` returns the lowest ``metadata.version`` that a broker supports. None: it is not known, as in a
    cluster with ZooKeeper: then a group without offsets counts as forgotten, which it soon is in every release.
    """
    for then in thens:
        offsets, certainty = then.offsets, then.certainty
        has_offsets = offsets.committed or offsets.pending or certainty.unknown_offsets
        if has_offsets or not then.group.is_simple or (oldest_broker() or 0) >= FIRST_OF_4_0:
            yield then

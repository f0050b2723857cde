"""What is missing from the log, so that nothing can be compared with it."""

from __future__ import annotations

from typing import Final, NamedTuple

WHERE_TOPICS_ARE: Final = (
    "supply the cluster metadata log, or where there is none (ZooKeeper) snapshots of the cluster (command snapshot), "
    "or brokers' logs (--broker-log)"
)
TOPICS_MISSING: Final = f"topics of that time: {WHERE_TOPICS_ARE}"


class GroupGap(NamedTuple):
    """Records of the group that may be missing before the one that is judged; ``missing`` names them.

    ``unbroken_from`` is the first of the offsets that continue without a hole up to that record; None: not known.
    """

    missing: str
    unbroken_from: int | None

    def is_after(self, offset: int | None) -> bool:
        """Whether records may be missing between ``offset`` (None: not known) and the record that is judged."""
        return offset is None or self.unbroken_from is None or max(offset, 0) < self.unbroken_from

"""What is missing from the log, so that nothing can be compared with it."""

from __future__ import annotations

from typing import Final, NamedTuple

TOPICS_MISSING: Final = (
    "topics of that time: supply the cluster metadata log (with ZooKeeper there is none), or snapshots of the cluster "
    "(command snapshot)"
)


class GroupGap(NamedTuple):
    """Records of the group that may be missing before the one that is judged; ``missing`` names them.

    ``unbroken_from`` is the first of the offsets that continue without a hole up to that record; None: not known.
    """

    missing: str
    unbroken_from: int | None

    def is_after(self, offset: int | None) -> bool:
        """Whether records may be missing between ``offset`` (None: not known) and the record that is judged."""
        return offset is None or self.unbroken_from is None or max(offset, 0) < self.unbroken_from

"""What follows from a share group's records."""

from __future__ import annotations

from coordinator_core.groups.share.state import ShareGroup, ShareGroupState


def group_state(group: ShareGroup) -> ShareGroupState:
    """The group's state: a share group is stable as soon as it has members (KIP-932)."""
    return ShareGroupState.STABLE if group.members else ShareGroupState.EMPTY

"""What follows from a classic group's records."""

from __future__ import annotations

from coordinator_core.groups.classic.state import ClassicGroup, ClassicGroupState


def group_state(group: ClassicGroup) -> ClassicGroupState:
    """The state that the last record proves: STABLE with members, else EMPTY.

    A rebalance that has begun since then is not in the log, so this is a lower bound of what is going on.
    """
    return ClassicGroupState.STABLE if group.members else ClassicGroupState.EMPTY

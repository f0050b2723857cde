"""Requests of old versions, which lack fields of the newer ones."""

from coordinator_core.coordinator.protocol import ErrorCode
from tests.core.coordinator.clients import GROUP, Cluster


def test_a_member_leaves_by_the_first_versions_again_and_again() -> None:
    """What fills in missing fields caches the types of values that it has seen."""
    at = Cluster.of({"orders": 2})
    for _ in range(2):
        outcome = at.send("LeaveGroup", 0, {"groupId": GROUP, "memberId": "nobody"})
        assert outcome.error is not None
        assert outcome.error.code is ErrorCode.UNKNOWN_MEMBER_ID

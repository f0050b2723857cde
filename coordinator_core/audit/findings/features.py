"""Groups that need a feature which the cluster has turned off (KIP-584), by the metadata log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from coordinator_core.audit.finding_rows import FindingKind, FindingRow
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.audit.folds.group_history import GroupHistory, counted
from coordinator_core.cluster.clocks import utc
from coordinator_core.groups.group_type import GroupType

NEEDED: Final = {
    GroupType.CONSUMER: "group.version",
    GroupType.SHARE: "share.version",
    GroupType.STREAMS: "streams.version",
}
"""The feature with which groups of a type work."""


def turned_off(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield a finding if the group has members, and the feature of its type is off since the metadata log says so."""
    present = history.present
    feature = NEEDED.get(GroupType(present.group_type)) if present is not None else None
    at = None if feature is None else history.topics.turned_off.get(feature)
    members = [row for row in history.memberships if row.is_open]
    if present is None or at is None or not members:
        return
    detail = (
        f"{feature} is 0 since {utc(at.timestamp_ms)} (__cluster_metadata {at.partition}:{at.offset}): brokers refuse "
        f"the heartbeats of {counted(len(members), 'member')}"
    )
    yield history.finding(FindingKind.FEATURE_OFF, len(members), 1, detail, [present.opened], is_open=True)

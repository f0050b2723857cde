"""Groups that need a feature which the cluster does not work with (KIP-584), by the metadata log."""

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


ALWAYS_ASKED: Final = ("group.version",)
"""Features without which brokers that support them refuse such groups, whatever their settings are.

Brokers before them had such groups, and share and streams groups of the previews need only a setting of the broker.
"""


def turned_off(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield a finding if the feature of the group's type is off, and the group had members since then.

    Members that brokers refuse leave no other trace than the end of their sessions. A group that went over to the
    classic protocol is of that type.
    """
    present = history.present
    name = NEEDED.get(GroupType(present.group_type)) if present is not None else None
    feature = None if name is None else history.topics.features.get(name)
    if present is None or feature is None or feature.level > 0:
        return
    if not feature.was_on and (feature.is_set or name not in ALWAYS_ASKED):
        return
    at = feature.at
    refused = [
        row for row in history.memberships if row.is_open or (row.left and row.left.timestamp_ms >= at.timestamp_ms)
    ]
    if refused:
        since = "is 0" if feature.is_set else "was never turned on, and brokers support it"
        detail = (
            f"{name} {since} since {utc(at.timestamp_ms)} (__cluster_metadata {at.partition}:{at.offset}): brokers "
            f"refuse the heartbeats of {counted(len(refused), 'member')}"
        )
        yield history.finding(FindingKind.FEATURE_OFF, len(refused), detail, [present.opened], is_open=True)

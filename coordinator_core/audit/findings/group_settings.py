"""Settings of a group itself that do not hold, or that end the sessions of its members (KIP-848, KIP-932, KIP-1071).

And groups that need a feature which the cluster does not work with (KIP-584).
"""

from collections.abc import Iterator
from typing import Final

from coordinator_core.audit.finding_rows import FindingKind, FindingRow, Level
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.audit.folds.group_history import GroupHistory, counted
from coordinator_core.cluster.clocks import utc
from coordinator_core.cluster.snapshot_settings import int_setting
from coordinator_core.groups.group_type import GroupType
from coordinator_core.groups.setting_bounds import MAX_SIZES, setting_problems, told


def out_of_bounds(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield a finding if values that are set for the group lie outside of their bounds at the end of the log.

    It is a warning if sessions end before members have to send the next heartbeat. A value outside of a default bound
    is no finding by itself: brokers refuse values outside of their bounds when they are set (INVALID_CONFIG), so that
    it only shows that the brokers of then had another bound.
    """
    present, own = history.present, history.topics.settings.get(history.group_id)
    if present is None or own is None:
        return
    snapshots = history.topics.snapshots
    problems = setting_problems(
        GroupType(present.group_type), own.values, lambda name: snapshots.of_brokers(name, None)
    )
    outside = [
        problem._replace(text=f"{name}={own.values[name]} is {problem.text}")
        for name, of_setting in problems.items()
        for problem in of_setting
        if problem.of_bounds or problem.is_of_session
    ]
    if any(problem.is_shown or problem.is_of_session for problem in outside):
        yield history.finding(
            FindingKind.SETTINGS_OUT_OF_BOUNDS,
            len(outside),
            f"{told(outside)} (__cluster_metadata {own.at.partition}:{own.at.offset})",
            [present.opened],
            level=Level.WARNING if any(problem.ends_sessions for problem in outside) else None,
            is_open=True,
            complete=history.topics.reach.covers_end(history.now_ms),
        )


def full(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield a finding if the group has as many members as brokers let it have, as a snapshot shows.

    Another member is refused (GROUP_MAX_SIZE_REACHED), which no record says.
    """
    present = history.present
    setting = None if present is None else MAX_SIZES.get(present.group_type)
    most = None if setting is None else int_setting(history.topics.snapshots.of_brokers(setting, None) or "")
    members = history.lasting(history.memberships)
    if present is None or most is None or not 0 < most <= len(members):
        return
    yield history.finding(
        FindingKind.GROUP_FULL,
        len(members),
        f"{counted(len(members), 'member')}, and {setting}={most}: brokers refuse another one, which no record says",
        [present.opened],
        threshold=most,
        is_open=True,
        complete=present.history_complete,
    )


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

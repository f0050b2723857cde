"""Settings of a group itself that do not hold, or that end the sessions of its members (KIP-848, KIP-932, KIP-1071)."""

from __future__ import annotations

from collections.abc import Iterator

from coordinator_core.audit.finding_rows import FindingKind, FindingRow, Level
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.audit.folds.group_history import GroupHistory, counted
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
    members = [row for row in history.memberships if row.is_open]
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

"""Streams groups (KIP-1071): warm-up tasks that never take over, half done topology updates, what a group left."""

from collections.abc import Iterator

from coordinator_core.audit.finding_rows import FindingKind, FindingRow
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.audit.folds.group_history import GroupHistory, counted, first_of
from coordinator_core.durations import duration
from coordinator_core.groups.classic.protocols import STREAMS_PROTOCOL
from coordinator_core.groups.group_type import GroupType
from coordinator_core.history.rows import AssignmentRow

INTERNAL_TOPICS = ("-changelog", "-repartition")
"""How the names of the topics end that Kafka Streams keeps for an application; they begin with its id and ``-``."""


def stuck_warmups(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield a finding for each member with tasks that have warmed up for long and still do.

    A warm-up task ends when its state has caught up: the next target makes it active. No record has the task's
    offsets, so the log cannot say whether it lags, or whether nobody looked.
    """
    by_member: dict[str, list[AssignmentRow]] = {}
    for row in history.lasting(history.assignments):
        if row.kind == "current" and row.role == "warmup":
            by_member.setdefault(row.member_id, []).append(row)
    for member_id, rows in sorted(by_member.items()):
        late = sorted(
            (row for row in rows if history.has_lasted(row.since.timestamp_ms, limits.warmup_ms)),
            key=lambda row: (row.since.timestamp_ms, row.subtopology or "", row.partition),
        )
        if not late:
            continue
        longest = history.now_ms - late[0].since.timestamp_ms
        tasks = ", ".join(f"{row.subtopology}_{row.partition}" for row in late)
        yield history.finding(
            FindingKind.WARMUP_STUCK,
            longest,
            f"{counted(len(late), 'task')} of member {member_id} have warmed up for up to {duration(longest)} and "
            f"are not active: {tasks}; compare restore rate and acceptable.recovery.lag",
            list(dict.fromkeys(row.since for row in late)),
            threshold=limits.warmup_ms,
            subject=member_id,
            is_open=True,
            complete=all(row.history_complete for row in late),
        )


def half_updated_topology(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield a finding if members of more than one topology epoch have been in the group for long at the end of the log.

    Members of the older topology get no new tasks (KIP-1071, topology updates). While a new version is rolled out this
    is as it should be.
    """
    members = [row for row in history.lasting(history.memberships) if row.topology_epoch is not None]
    newest = max((row.topology_epoch or 0 for row in members), default=0)
    older = [row for row in members if row.topology_epoch != newest]
    newer = [row for row in members if row.topology_epoch == newest]
    if not older:
        return
    first = min((row.joined for row in newer), key=lambda at: at.timestamp_ms)
    if not history.has_lasted(first.timestamp_ms, limits.topology_update_ms):
        return
    lasts_ms = history.now_ms - first.timestamp_ms
    names = first_of(sorted(row.member_id for row in older))
    yield history.finding(
        FindingKind.TOPOLOGY_HALF_UPDATED,
        lasts_ms,
        f"{len(older)} of {counted(len(members), 'member')} still have an older topology than epoch {newest}, which "
        f"a member brought {duration(lasts_ms)} before the end of the log; they get no new "
        f"tasks: {names}",
        [first],
        threshold=limits.topology_update_ms,
        is_open=True,
        complete=all(row.history_complete for row in members),
    )


def internal_topics_left(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield a finding if topics named as internal ones of a deleted application exist at the end of the log.

    Another application whose id begins with this one's may own them: no record says whose a topic is.
    """
    ended = [row for row in history.epochs if row.ended_by == "group deleted" and row.ended is not None]
    was_streams = any(row.group_type == GroupType.STREAMS or row.assignor == STREAMS_PROTOCOL for row in history.epochs)
    if history.present is not None or not ended or not was_streams:
        return
    left = sorted(
        name
        for name in history.topics.partitions
        if name.startswith(f"{history.group_id}-") and name.endswith(INTERNAL_TOPICS)
    )
    if not left:
        return
    last = max((row.ended for row in ended if row.ended is not None), key=lambda at: at.offset)
    yield history.finding(
        FindingKind.INTERNAL_TOPICS_LEFT,
        len(left),
        f"{counted(len(left), 'topic')} of the deleted application still there: {first_of(left)}",
        [last],
        is_open=True,
        complete=history.topics.reach.covers_end(history.now_ms),
    )

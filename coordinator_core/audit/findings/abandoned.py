"""Groups and topics that are no longer used while the log still keeps their offsets."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from coordinator_core.audit.finding_rows import FindingKind, FindingRow
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.audit.folds.commit_rows import PartitionCommits
from coordinator_core.audit.folds.group_history import GroupHistory, counted
from coordinator_core.durations import duration


def zombies(history: GroupHistory, limits: Thresholds) -> Iterator[FindingRow]:
    """Yield one finding if the group is no longer used; if it still has members, one for each topic that is not."""
    kept = [commit for commit in history.commits if commit.offset is not None]
    if not kept:
        return
    last = max((commit.last for commit in kept), key=lambda at: at.timestamp_ms)
    if any(row.is_open for row in history.memberships):
        yield from _topics(history, limits, kept)
        return
    ends = [last, *(row.left for row in history.memberships if row.left is not None)]
    latest = max(ends, key=lambda at: at.timestamp_ms)
    if history.has_lasted(latest.timestamp_ms, limits.zombie_ms):
        silent = history.now_ms - latest.timestamp_ms
        known = history.knows_members_at(latest)
        who = "no member and " if known else ""
        detail = f"{who}no commit for {duration(silent)}; offsets of {counted(len(kept), 'partition')} are kept"
        yield history.finding(
            FindingKind.ZOMBIE_GROUP, silent, detail, [latest], threshold=limits.zombie_ms, is_open=True, complete=known
        )


def _topics(history: GroupHistory, limits: Thresholds, kept: list[PartitionCommits]) -> Iterator[FindingRow]:
    """Yield topics without new commits of which no member has a partition.

    Where the log does not say which topics members read, only deleted topics are reported.
    """
    held = {row.topic for row in history.assignments if row.is_open}
    hidden = history.group_type == "STREAMS" or any(
        row.is_open and row.role == "partition" and row.topic is None for row in history.assignments
    )
    by_topic: dict[str, list[PartitionCommits]] = defaultdict(list)
    for commit in kept:
        by_topic[commit.topic].append(commit)
    for topic, commits in sorted(by_topic.items()):
        last = max((commit.last for commit in commits), key=lambda at: at.timestamp_ms)
        if topic in held or not history.has_lasted(last.timestamp_ms, limits.zombie_ms):
            continue
        silent, topics = history.now_ms - last.timestamp_ms, history.topics
        gone = topics.reach.covers_end(history.now_ms) and topic not in topics.partitions
        if hidden and not gone:
            continue
        detail = (
            f"offsets of {counted(len(commits), 'partition')} of {topic} are kept; "
            f"the last commit was {duration(silent)} ago"
        )
        if gone:
            detail += "; the topic was deleted"
        yield history.finding(
            FindingKind.ZOMBIE_TOPIC, silent, detail, [last], threshold=limits.zombie_ms, subject=topic, is_open=True
        )

"""The metrics of a watch: the same facts as those of ``metrics``, from the groups as they are followed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from coordinator_core.audit.folds.tallies import GroupTallies
from coordinator_core.groups.certainty import CERTAIN, Certainty
from coordinator_core.groups.classic.state import ClassicGroup
from coordinator_core.groups.offsets import Commit, GroupOffsets, TopicPartition
from coordinator_core.groups.proven_state import GroupThen
from coordinator_core.records import Family
from jobs.metrics.families import GroupFacts, MetricNames
from jobs.watch.followed_group import FollowedGroup
from jobs.watch.followed_groups import FollowedGroups

IN_PART: Final = Certainty(all_members=False, all_offsets=False, transactions_are_known=False)
"""What is known of a group whose log lacks records: there may have been more of everything."""


def watched_facts(groups: FollowedGroups, cluster: str, names: Sequence[MetricNames]) -> GroupFacts:
    """Return the facts about all groups as of the last record that was read."""
    followed = sorted(groups.groups.values(), key=lambda group: group.group_id)
    of_groups = [log for place, log in groups.logs.items() if place.family in (Family.GROUP, Family.CONNECT)]
    tallies: dict[str, GroupTallies] = {}
    for tracked in followed:
        counted = tracked.tallies.with_rows(tracked.folds.audit.open_rows())
        known = tallies.get(tracked.group_id)
        tallies[tracked.group_id] = counted if known is None else known.joined(counted)
    return GroupFacts(
        cluster,
        names,
        list(_groups(groups, followed)),
        groups.lags.ends,
        tallies,
        list(groups.findings()),
        lag=[point for points in groups.lags.points.values() for point in points],
        is_whole=all(log.is_whole for log in groups.logs.values()),
        moment_ms=max((group.last_ms for group in of_groups if group.last_ms >= 0), default=None),
    )


def _groups(groups: FollowedGroups, followed: Sequence[FollowedGroup]) -> Iterator[GroupThen]:
    for tracked in followed:
        committed = {
            TopicPartition(row.topic, row.partition): Commit(row.offset, None, "", -1, None, None, row.last)
            for row in tracked.folds.commits.partitions()
            if row.offset is not None
        }
        group = tracked.folds.audit.group
        if group.state is None and group.from_start and committed:
            group = replace(group, state=ClassicGroup())  # offsets alone make a classic group
        then = GroupThen(group, GroupOffsets(committed), CERTAIN if groups.logs[tracked.place].is_whole else IN_PART)
        if then.is_possible:
            yield then

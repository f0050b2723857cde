"""The findings about a cluster itself: what no group's own history shows, and what many groups had at once.

Storms of many groups that begin in the same minute have one cause, or several that no group's own history tells: one
finding says it of all of them. So it is with deploys, and with a log partition without coordinator. What each group has
to show for it is covered by that, and is left out of lists.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from typing import Final, NamedTuple

from coordinator_core.audit.finding_rows import FindingKind, FindingRow, Level, make_finding
from coordinator_core.audit.findings.coordinator_away import (
    GroupLife,
    LostMember,
    coordinator_away,
    group_lives,
    lost_members,
)
from coordinator_core.audit.findings.many_groups import (
    GroupStay,
    LostSession,
    group_stays,
    in_order,
    lost_sessions,
    short_lived,
    stood_still,
)
from coordinator_core.audit.findings.thresholds import Thresholds
from coordinator_core.audit.folds.group_history import GroupHistory, counted, first_of
from coordinator_core.audit.folds.topics_at_end import TopicsAtEnd
from coordinator_core.cluster.clocks import utc
from coordinator_core.durations import duration
from coordinator_core.records import GROUP_LOG

SAME_MINUTE_MS = 60_000
"""Storms that begin within this time of the first one began together; so long before it, its cause may have ended."""
TWICE = 2
MOST_NAMED = 5
"""A finding names at most this many groups."""
A_FEW_DEPLOYS: Final = 10
"""The deploys of so many groups are told one by one: each says what its clients should do."""
OF_LOG_PARTITIONS: Final = (FindingKind.NO_COORDINATOR, FindingKind.WILL_NOT_LOAD, FindingKind.MAY_NOT_LOAD)
"""Kinds of findings about a log partition, which are made from those of its groups."""
OF_ALL_TIMES: Final = (FindingKind.SHORT_LIVED_GROUPS, *OF_LOG_PARTITIONS)
"""Kinds that count groups of any time: one before the first that is known would count, too."""
ShowsAll = Callable[[int], bool]
"""Whether the logs lack nothing about any group from a time (ms) on, nor hide one that was there before."""
COVERED: Final[Mapping[str, frozenset[str]]] = {
    FindingKind.REBALANCE_STORM: frozenset(
        (
            FindingKind.REBALANCE_STORM,
            FindingKind.FLAPPING_MEMBER,
            FindingKind.ROLLING_DEPLOY,
            FindingKind.STATIC_MEMBER_EXPIRED,
        )
    ),
    **{kind: frozenset((kind,)) for kind in (FindingKind.ROLLING_DEPLOY, *OF_LOG_PARTITIONS)},
}
"""By kind of a finding about many groups at once, which is made from those of each: what it covers. In a storm, the
members of a group come and go.
"""


class ClusterSigns(NamedTuple):
    """What the findings about a cluster are made from: of one group, or of all."""

    sessions: tuple[LostSession, ...] = ()
    lives: tuple[GroupLife, ...] = ()
    lost: tuple[LostMember, ...] = ()
    stays: tuple[GroupStay, ...] = ()

    @classmethod
    def of(cls, history: GroupHistory) -> "ClusterSigns":
        """Return what the history of one group shows."""
        return cls(
            tuple(lost_sessions(history)),
            tuple(group_lives(history)),
            tuple(lost_members(history)),
            tuple(group_stays(history)),
        )

    @classmethod
    def of_all(cls, of_groups: "Iterable[ClusterSigns]") -> "ClusterSigns":
        """Return what all groups show."""
        return cls(*(tuple(chain.from_iterable(of_kind)) for of_kind in zip(*of_groups, strict=True)))


NO_SIGNS = ClusterSigns()


class CoveredRows(NamedTuple):
    """What many groups have at once, as a storm: the finding about it, and the groups."""

    row: FindingRow
    groups: frozenset[str]

    def covers(self, row: FindingRow) -> bool:
        """Whether it says what a finding about one group says."""
        return (
            row.group_id in self.groups
            and row.kind in COVERED[self.row.kind]
            and self.row.since_ms <= row.since_ms <= self.row.until_ms
        )


def about_cluster(
    signs: ClusterSigns, topics: TopicsAtEnd, of_groups: Iterable[FindingRow], limits: Thresholds, shows_all: ShowsAll
) -> tuple[list[FindingRow], list[CoveredRows]]:
    """Return the findings about a cluster, and those of them that say what many groups have at once.

    ``signs`` are those of all groups, ``of_groups`` their findings: those of kinds in COVERED count.
    A finding counts groups, or what they have: it is not complete where the logs may lack a group of its time, or of
    so long before that it would be part of the same.
    """

    def known(row: FindingRow) -> FindingRow:
        since_ms = 0 if row.kind in OF_ALL_TIMES else row.since_ms - SAME_MINUTE_MS
        return row if shows_all(since_ms) else row._replace(history_complete=False)

    # In this order: what was away explains the sessions that were lost then, and these the storms.
    away = list(coordinator_away(signs.lives, signs.lost, topics, limits))
    failed = [time for times in topics.away.values() for time in times if time.is_taken_over]
    still = list(stood_still(in_order(signs.sessions), limits, away, failed, signs.lost))
    made_from = list(of_groups)
    storms = [*_of_log_partitions(made_from, signs.lives), *_storms(made_from, limits, still)]
    # A deploy that makes a storm is part of that one.
    storms += _deploys([row for row in made_from if not any(storm.covers(row) for storm in storms)])
    storms = [storm._replace(row=known(storm.row)) for storm in storms if storm.row.kind not in limits.off]
    rows = [*map(known, [*away, *still, *short_lived(signs.stays, limits)]), *(storm.row for storm in storms)]
    return [row for row in rows if row.kind not in limits.off], storms


def marked(rows: Iterable[FindingRow], storms: Sequence[CoveredRows]) -> Iterator[FindingRow]:
    """Yield the findings about groups; what a storm of many groups says of them is marked as covered."""
    for row in rows:
        yield row._replace(covered=any(storm.covers(row) for storm in storms))


def _of_log_partitions(rows: Iterable[FindingRow], lives: Iterable[GroupLife]) -> Iterator[CoveredRows]:
    """Yield one finding for each log partition that could not be loaded, or will not be, from those of its groups."""

    def place(row: FindingRow) -> str:
        return row.subject or ""

    there = sorted({(f"{life.topic}-{life.partition}", life.group_id) for life in lives})
    made_from = list(rows)
    for kind in OF_LOG_PARTITIONS:
        of_kind = (row for row in made_from if row.kind == kind)
        for subject, same in groupby(sorted(of_kind, key=lambda row: (place(row), row.group_id or "")), key=place):
            told = list(same)
            groups = sorted({row.group_id or "" for row in told})
            of_place = groups if kind is FindingKind.NO_COORDINATOR else [group for at, group in there if at == subject]
            detail = f"{counted(len(of_place), 'group')} ({first_of(of_place)}): {told[0].detail}"
            yield _of_many(kind, max(row.value for row in told), detail, told, told[0].log_topic, subject)


def _of_many(
    kind: FindingKind, value: int, detail: str, rows: Sequence[FindingRow], log_topic: str, subject: str | None = None
) -> CoveredRows:
    """Return the finding that says at once what these rows say of each of their groups."""
    finding = make_finding(
        kind,
        value,
        rows[0].threshold,
        detail,
        [at for row in rows for at in row.evidence[:1]],
        subject=subject,
        since_ms=min(row.since_ms for row in rows),
        until_ms=max(row.until_ms for row in rows),
        is_open=any(row.is_open for row in rows),
        log_topic=log_topic,
        complete=all(row.history_complete for row in rows),
    )
    return CoveredRows(finding, frozenset(row.group_id or "" for row in rows))


def _deploys(rows: Iterable[FindingRow]) -> Iterator[CoveredRows]:
    """Yield one finding for the deploys of many groups that began in the same minute."""
    for together in _same_minute(rows, FindingKind.ROLLING_DEPLOY):
        groups = sorted({row.group_id or "" for row in together})
        if len(groups) <= A_FEW_DEPLOYS:
            continue
        count = sum(row.value for row in together)
        detail = f"the clients of {counted(len(groups), 'group')} ({first_of(groups)}) were restarted one after the "
        detail += f"other in the same minutes: {counted(count, 'rebalance')}; see findings --group GROUP"
        yield _of_many(FindingKind.ROLLING_DEPLOY, count, detail, together, together[0].log_topic)


def _same_minute(rows: Iterable[FindingRow], kind: FindingKind) -> Iterator[list[FindingRow]]:
    """Yield the findings of a kind that began in the minute of the first one."""
    together: list[FindingRow] = []
    of_kind = (row for row in rows if row.kind == kind)
    for row in sorted(of_kind, key=lambda row: (row.since_ms, row.group_id or "", row.until_ms)):
        if together and row.since_ms - together[0].since_ms > SAME_MINUTE_MS:
            yield together
            together = []
        together.append(row)
    if together:
        yield together


def _storms(rows: Iterable[FindingRow], limits: Thresholds, still: Sequence[FindingRow]) -> Iterator[CoveredRows]:
    # A notice says that it may be a deploy of which records are missing: it is no storm of many groups, and hides none.
    sure = (row for row in rows if row.level != Level.NOTICE)
    for together in _same_minute(sure, FindingKind.REBALANCE_STORM):
        most: dict[str, int] = {}
        for row in together:
            most[row.group_id or ""] = max(row.value, most.get(row.group_id or "", 0))
        if len(most) >= limits.storm_groups:
            detail = _storm(together, most, limits, still)
            yield _of_many(FindingKind.REBALANCE_STORM, max(most.values()), detail, together, GROUP_LOG)


def _storm(rows: Sequence[FindingRow], most: Mapping[str, int], limits: Thresholds, still: Sequence[FindingRow]) -> str:
    """Say how often groups rebalanced, ``most`` by group, and why."""
    since_ms, until_ms = rows[0].since_ms, max(row.until_ms for row in rows)
    ranked = sorted(most, key=lambda group_id: (-most[group_id], group_id))
    named = ", ".join(f"{group_id} {most[group_id]}" for group_id in ranked[:MOST_NAMED])
    more = f" and {len(ranked) - MOST_NAMED} more" if len(ranked) > MOST_NAMED else ""
    return (
        f"{counted(len(most), 'group')} began to rebalance very often in the same minute, at least "
        f"{min(most.values())} times within {duration(limits.storm_window_ms)} each ({named}{more}); "
        f"{_cause(rows, still, since_ms, until_ms)}"
    )


def _cause(rows: Sequence[FindingRow], still: Iterable[FindingRow], since_ms: int, until_ms: int) -> str:
    """Say what else is known of the cluster that makes most of the rebalances, if anything does. What follows a
    coordinator that was away is not counted in storms.

    A session that is lost makes at most two: its member goes and comes back.
    """
    near = [row for row in still if since_ms - SAME_MINUTE_MS <= row.until_ms and row.since_ms <= until_ms]
    explained, rebalances = TWICE * sum(row.value for row in near), sum(row.value for row in rows)
    if TWICE * explained < rebalances:
        return "no cause in the cluster itself is known: look for what the clients of these groups have in common"
    times = ", ".join(utc(row.since_ms) for row in sorted(near, key=lambda row: row.since_ms))
    return f"members of several groups lost their sessions in the same second ({times})"

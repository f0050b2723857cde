"""Findings about a cluster count groups: they are complete only where the logs may lack none of that time."""

import pytest

from coordinator_core.audit.finding_rows import FindingKind, FindingRow, Level, make_finding
from coordinator_core.audit.findings.coordinator_away import GroupLife, LostMember
from coordinator_core.audit.findings.many_groups import GroupStay, LostSession
from coordinator_core.audit.findings.of_cluster import ClusterSigns, ShowsAll, about_cluster
from coordinator_core.audit.folds.topics_at_end import TopicsAtEnd
from coordinator_core.cluster.coordinators_away import CoordinatorAway
from coordinator_core.cluster.given_topics import TopicReach
from coordinator_core.groups.certainty import LogGaps
from coordinator_core.history.knowledge import GivenLogs, Knowledge
from coordinator_core.history.memberships import away_until
from coordinator_core.records import GROUP_LOG
from jobs.settings import load
from tests.core.audit.histories import all_shown, at

LIMITS = load(environment={}).findings
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
AWAY = CoordinatorAway(GROUP_LOG, 0, 1, at(5, HOUR_MS), at(6, HOUR_MS + MINUTE_MS), is_planned=False, fenced=None)
TOPICS = TopicsAtEnd(reach=TopicReach(0, 24 * HOUR_MS), away={(GROUP_LOG, 0): (AWAY,)})
THERE = GroupLife("a", GROUP_LOG, 0, MINUTE_MS, None, history_complete=True)
SIGNS = ClusterSigns(
    sessions=tuple(
        LostSession(f"g{n % 4}", f"m{n}", "/h", at(n, 3 * HOUR_MS), 3 * HOUR_MS + 900, history_complete=True)
        for n in range(40)
    ),
    lives=(THERE,),
    stays=tuple(GroupStay(f"console-{n}", at(n, 2 * HOUR_MS), 2 * HOUR_MS + 1) for n in range(100)),
)
OF_GROUPS = (FindingKind.REBALANCE_STORM, FindingKind.ROLLING_DEPLOY, FindingKind.NO_COORDINATOR)


def of_groups() -> list[FindingRow]:
    """Each kind that is told of many groups at once, at a time of its own."""
    rows = []
    for hour, kind in enumerate(OF_GROUPS, start=5):
        begun = at(hour, hour * HOUR_MS)
        place = f"{GROUP_LOG}-0" if kind is FindingKind.NO_COORDINATOR else None
        times = {"since_ms": hour * HOUR_MS, "until_ms": hour * HOUR_MS + 1}
        rows += [
            make_finding(kind, 100, 1, "", [begun], group_id=f"g{n}", subject=place, complete=True, **times)
            for n in range(20)
        ]
    return rows


def found(shows_all: ShowsAll, signs: ClusterSigns = SIGNS) -> dict[str, bool]:
    """Whether each finding is complete; one that tells of many groups says the same as what covers theirs."""
    rows, covering = about_cluster(signs, TOPICS, of_groups(), LIMITS, shows_all)
    assert {each.row for each in covering} <= {*rows}
    return {row.kind: row.history_complete for row in rows}


def test_whatever_counts_groups_rests_on_the_logs_of_all_groups() -> None:
    kinds = {*OF_GROUPS, FindingKind.COORDINATOR_AWAY, FindingKind.STOOD_STILL, FindingKind.SHORT_LIVED_GROUPS}
    assert found(all_shown) == dict.fromkeys(kinds, True)
    assert found(lambda since_ms: False) == dict.fromkeys(kinds, False)


def test_only_sure_storms_are_one_of_many_groups() -> None:
    storms = [row for row in of_groups() if row.kind == FindingKind.REBALANCE_STORM][: LIMITS.storm_groups]
    (covering,) = about_cluster(ClusterSigns(), TOPICS, storms, LIMITS, all_shown)[1]
    assert all(map(covering.covers, storms))
    unsure = [storms[0]._replace(level=Level.NOTICE), *storms[1:]]
    assert about_cluster(ClusterSigns(), TOPICS, unsure, LIMITS, all_shown)[1] == []


def test_what_was_compacted_long_before_counts_for_what_counts_groups_of_all_times() -> None:
    doubted = {FindingKind.SHORT_LIVED_GROUPS, FindingKind.NO_COORDINATOR}
    assert found(lambda since_ms: since_ms >= HOUR_MS - MINUTE_MS) == {
        kind: kind not in doubted for kind in found(all_shown)
    }


@pytest.mark.parametrize(("first_ms", "is_known"), [(2 * HOUR_MS, False), (2 * HOUR_MS, True), (MINUTE_MS, False)])
def test_a_group_whose_beginning_is_not_shown_may_have_been_there(first_ms: int, is_known: bool) -> None:
    """Compaction removed what it wrote before, or it began then: one that is counted anyway takes nothing away."""
    later = GroupLife("b", GROUP_LOG, 0, first_ms, None, is_known)
    told = found(all_shown, SIGNS._replace(lives=(THERE, later)))
    assert told[FindingKind.COORDINATOR_AWAY] == (is_known or first_ms == MINUTE_MS)


@pytest.mark.parametrize(("gaps", "shows"), [(LogGaps(4), True), (LogGaps(4, 4), False)])
def test_a_group_whose_records_were_lost_before_may_be_there(gaps: LogGaps, shows: bool) -> None:
    """What compaction left of a group tells of it."""
    given = GivenLogs({GROUP_LOG: frozenset({0})}, {GROUP_LOG: 1})
    known = Knowledge(given, {f"{GROUP_LOG}-0": gaps}, whole_from_ms=MINUTE_MS)
    assert (known.shows_all_since(HOUR_MS), known.shows_all_since(MINUTE_MS)) == (shows, False)


@pytest.mark.parametrize("others", [0, 1])
def test_sessions_that_a_failed_coordinator_ended_are_not_laid_to_the_host_of_the_clients(others: int) -> None:
    """Another broker took over 30 s before; the hint of each member says so, but for one that was heard since."""
    failed = AWAY._replace(since=at(5, 3 * HOUR_MS - 30_000), until=at(5, 3 * HOUR_MS - 30_000), fenced=at(5, HOUR_MS))
    hint = f"{away_until(failed.until_ms)} no member could send a heartbeat"
    lost = tuple(LostMember(each.group_id, each.left.timestamp_ms, hint) for each in SIGNS.sessions[others:])
    session = SIGNS.sessions[0]._replace(left=at(99, 3 * HOUR_MS + 1))
    sessions = (*SIGNS.sessions[others:], *[session] * others)
    signs = ClusterSigns(sessions=sessions, lives=(THERE,), lost=lost)
    topics = TOPICS._replace(away={(GROUP_LOG, 0): (failed,)})
    (row,) = about_cluster(signs, topics, (), LIMITS, all_shown)[0]
    assert row.kind == FindingKind.STOOD_STILL
    told = "their coordinator had failed: broker 1 was gone without a controlled shutdown" in row.detail
    assert (told, row.subject) == ((False, "h") if others else (True, "broker 1"))

"""Each finding on each kind of group that it speaks of, and on none of those that it leaves out.

A case is a history that has the finding; the same story is told for every kind of group, with the rows that such a
group has: topic partitions, tasks, connectors, or several of them.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest

from coordinator_core.audit.finding_rows import FindingKind
from coordinator_core.audit.findings.all_findings import findings
from coordinator_core.audit.folds.commits import OpenTransaction, PartitionCommits, Removal, Rewind
from coordinator_core.audit.folds.group_history import GroupHistory, RecordSize
from coordinator_core.audit.rows import Basis, TargetAuditRow, Verdict
from coordinator_core.broker_log.lines import events
from coordinator_core.groups.rules import Rule
from coordinator_core.groups.streams.readiness import TaskCount, TopologyCheck
from coordinator_core.groups.violations import Violation
from coordinator_core.history.lost_records import LostRecords
from coordinator_core.history.rows import AWAY_UNSEEN, AssignmentRow
from coordinator_core.records import LOG_TOPICS, Family, LogPosition
from jobs.settings import load
from tests.core.audit.histories import assignment, at, epoch, member, rebalance
from tests.core.known_topics import at_end

LIMITS = load(environment={}).findings
DAY = 24 * 3_600_000
Parts = dict[str, Any]


class Kind(NamedTuple):
    """A kind of group: its type and assignor, and the roles in which its members have things."""

    name: str
    type: str
    assignor: str | None
    roles: tuple[str, ...]
    subscribed: tuple[str, ...] = ()

    @property
    def names_topics(self) -> bool:
        """Whether the log says which partitions of topics its members have."""
        return "partition" in self.roles

    def held(self, name: str, number: int, since: LogPosition, until: LogPosition | None = None) -> list[AssignmentRow]:
        """The rows of one unit; a classic Streams group has one for the task and one for its partition."""
        return [
            assignment(
                name,
                -1 if role == "connector" else number,
                since,
                until,
                group_type=self.type,
                role=role,
                resource=f"c{number}" if role == "connector" else "t",
                topic="t" if role == "partition" else None,
            )
            for role in self.roles
        ]

    def member(self, name: str, joined: LogPosition, left: LogPosition | None = None, **more: Any) -> Any:
        return member(name, joined, left, **({"group_type": self.type, "subscribed_topics": self.subscribed} | more))

    def epoch(self, number: int, opened: LogPosition, **more: Any) -> Any:
        return epoch(number, opened, group_type=self.type, assignor=self.assignor, **more)

    def rebalance(self, number: int, position: LogPosition, **more: Any) -> Any:
        return rebalance(number, position, group_type=self.type, **more)


CLASSIC = Kind("classic consumers", "CLASSIC", "cooperative-sticky", ("partition",), ("t",))
CLASSIC_STREAMS = Kind("classic Streams", "CLASSIC", "stream", ("partition", "active"), ("t",))
CLASSIC_CONNECT = Kind("classic Connect", "CLASSIC", "sessioned", ("connector",))
CONSUMER = Kind("consumer", "CONSUMER", "uniform", ("partition",), ("t",))
SHARE = Kind("share", "SHARE", "simple", ("partition",), ("t",))
STREAMS = Kind("streams", "STREAMS", None, ("active",))
CONNECT = Kind("Connect on KIP-848", "CONNECT", "sessioned", ("connector",))
EVERY = (CLASSIC, CLASSIC_STREAMS, CLASSIC_CONNECT, CONSUMER, SHARE, STREAMS, CONNECT)
WITH_EPOCHS = (CONSUMER, SHARE, STREAMS, CONNECT)
WITHOUT_SHARE = (CLASSIC, CLASSIC_STREAMS, CLASSIC_CONNECT, CONSUMER, STREAMS, CONNECT)


def without(kinds: Sequence[Kind], *others: Kind) -> tuple[Kind, ...]:
    return tuple(kind for kind in kinds if kind not in others)


def commits(topic: str = "t", **more: Any) -> PartitionCommits:
    values: dict[str, Any] = {"partition": 0, "commits": 10, "first": at(1), "last": at(100), "offset": 5}
    return PartitionCommits(topic, **(values | {"rewinds": (), "removals": ()} | more))


def not_kept(kind: Kind) -> Parts:
    prefix = "[2026-11-23 14:25:07,123] INFO [GroupCoordinator id=1 topic=__consumer_offsets partition=0]"
    texts = "[GroupId g] Member m left the consumer group.", "Group g with generation 3 is now empty."
    lines = [line for text in texts for line in events(f"{prefix} {text}", "server.log", 1)]
    return {
        "memberships": [kind.member("m", at(1))],
        "events": [
            *(line._replace(timestamp_ms=at(1).timestamp_ms + DAY) for line in lines),
            lines[0]._replace(timestamp_ms=at(1).timestamp_ms + 2 * DAY, kind="file_ends"),
        ],
        "epochs": [kind.epoch(2, at(1))],
    }


def refused(kind: Kind) -> Parts:
    prefix = "[2026-11-23 14:25:07,123] INFO [GroupCoordinator id=1 topic=__consumer_offsets partition=0]"
    said = f"{prefix} Cannot upgrade classic group g to consumer group because online upgrade is disabled."
    return {"events": list(events(said, "server.log", 1)), "epochs": [kind.epoch(2, at(1))]}


def not_loaded(kind: Kind) -> Parts:
    said = "[2026-11-23 14:25:07,123] ERROR [GroupCoordinator id=1] Failed to load metadata from __consumer_offsets-0 "
    said += "with epoch 4 due to java.lang.IllegalStateException."
    return {"events": list(events(said, "server.log", 1)), "epochs": [kind.epoch(2, at(1))]}


def broken(kind: Kind) -> Parts:
    return {"violations": [Violation(Rule.ASSIGNED_TO_TWO, at(3), "g", "m", "")], "epochs": [kind.epoch(2, at(1))]}


def wrong(kind: Kind) -> Parts:
    row = TargetAuditRow(
        group_id="g",
        group_type=kind.type,  # type: ignore[arg-type]
        epoch=2,
        at=at(3),
        opened=at(2),
        verdict=Verdict.DIVERGENT,
        basis=Basis.ASSIGNOR,
        assignor=kind.assignor,
        fitted=None,
        missing=None,
        differences=(),
        difference_count=1,
        members=1,
        expected=None,
        recorded=None,
        topics_at=None,
        topics_proven=None,
    )
    return {"targets": [row], "epochs": [kind.epoch(2, at(1))]}


def storm(kind: Kind) -> Parts:
    return {"rebalances": [kind.rebalance(number, at(number)) for number in range(2, 14)]}


def slow(kind: Kind) -> Parts:
    return {"rebalances": [kind.rebalance(2, at(2), duration_min_ms=61_000)]}


def restless(kind: Kind) -> Parts:
    return {"rebalances": [kind.rebalance(each, at(100 * each), outcome="superseded") for each in range(2, 9)]}


def flapping(kind: Kind) -> Parts:
    stays = [kind.member(f"m{n}", at(10 * n), at(10 * n + 5), client_id="c") for n in range(5)]
    return {"memberships": [kind.member("other", at(0), client_id="o"), *stays]}


def deploy(kind: Kind) -> Parts:
    members, rows = [], []
    for n in range(3):
        left, back = at(100 + 20 * n), at(110 + 20 * n)
        members += [kind.member(f"old{n}", at(n), left, client_id=f"c{n}")]
        members += [kind.member(f"new{n}", back, client_id=f"c{n}")]
        rows += [kind.rebalance(2 * n + 5, left), kind.rebalance(2 * n + 6, back)]
    return {"memberships": members, "rebalances": rows}


def fenced(kind: Kind) -> Parts:
    """Static members of the classic protocol may have gone before."""
    hint = AWAY_UNSEEN if kind.type == "CLASSIC" else None
    old = kind.member("a", at(1), at(5), instance_id="i", went_by="static replacement", hint=hint)
    return {"memberships": [old, kind.member("b", at(5), instance_id="i", replaces="a")]}


def expired(kind: Kind) -> Parts:
    """Groups with epochs record that a static member is away; of a classic one the time suggests it."""
    how: Parts = {"hint": "expired: silent for 45000 ms"} if kind.type == "CLASSIC" else {"away_since": at(10)}
    return {"memberships": [kind.member("a", at(1), at(60), instance_id="i", **how)]}


def two_members(kind: Kind) -> list[Any]:
    return [kind.member("a", at(1)), kind.member("b", at(1))]


def uneven(kind: Kind) -> Parts:
    return {
        "epochs": [kind.epoch(2, at(2))],
        "memberships": two_members(kind),
        "assignments": [row for number in range(4) for row in kind.held("a", number, at(2))],
        "rebalances": [kind.rebalance(2, at(3))],
    }


def swapped(kind: Kind) -> Parts:
    before = [*kind.held("a", 0, at(2), at(5)), *kind.held("b", 1, at(2), at(5))]
    return {
        "epochs": [kind.epoch(2, at(2), ended=at(5), ended_by="next epoch"), kind.epoch(3, at(5))],
        "memberships": two_members(kind),
        "assignments": [*before, *kind.held("b", 0, at(6)), *kind.held("a", 1, at(6))],
        "rebalances": [kind.rebalance(2, at(3)), kind.rebalance(3, at(5), finished=at(6))],
    }


def without_owner(kind: Kind) -> Parts:
    """A classic Streams group reads what its topology says, so that a partition without an owner may be right."""
    topology = TopologyCheck("READY", None, (TaskCount("0", 3),)) if kind is STREAMS else None
    return {
        "epochs": [kind.epoch(2, at(2), topology=topology)],
        "memberships": two_members(kind),
        "assignments": kind.held("a", 0, at(2)),
        "topics": at_end({"t": 3}),
    }


def not_ready(kind: Kind) -> Parts:
    state = "NOT_READY" if kind is STREAMS else "ASSIGNING"
    return {"epochs": [kind.epoch(2, at(2), state=state, members=("a", "b"))]}


def rewound(kind: Kind) -> Parts:
    return {
        "assignments": [*kind.held("a", 0, at(2), at(19)), *kind.held("b", 0, at(20))],
        "rebalances": [kind.rebalance(3, at(18), finished=at(20))],
        "epochs": [kind.epoch(3, at(18), members=("a", "b"))],
        "commits": [commits(rewinds=(Rewind(at(25), 90, 40),))],
    }


def set_back(kind: Kind) -> Parts:
    return {"commits": [commits(rewinds=(Rewind(at(25), 90, 40),))], "epochs": [kind.epoch(2, at(1), members=())]}


def removed(kind: Kind) -> Parts:
    return {"commits": [commits(removals=(Removal(at(50), 5, "expired"),))], "epochs": [kind.epoch(2, at(1))]}


def huge(kind: Kind) -> Parts:
    log = LOG_TOPICS[Family.CONNECT if kind is CONNECT else Family.GROUP]
    return {"sizes": [RecordSize(log, 3, 1_000_000, 1, at(5))], "epochs": [kind.epoch(2, at(1))]}


def flood(kind: Kind) -> Parts:
    often = commits(commits=6_000, first=at(1, 0), last=at(2, 60_000))
    return {"commits": [often], "epochs": [kind.epoch(2, at(1))]}


def left_open(kind: Kind) -> Parts:
    return {"transactions": [OpenTransaction(9, at(1), 2)], "epochs": [kind.epoch(2, at(1))]}


def dead(kind: Kind) -> Parts:
    return {"commits": [commits()], "memberships": [kind.member("a", at(1), at(5))], "epochs": [kind.epoch(2, at(1))]}


def left_internal_topics(kind: Kind) -> Parts:
    deleted = kind.epoch(2, at(1), ended=at(5), ended_by="group deleted", is_open=False)
    return {"epochs": [deleted], "topics": at_end({"g-store-changelog": 3, "t": 3})}


def left_topic(kind: Kind) -> Parts:
    """A group that has ``t`` committed ``left`` long ago, which is there still."""
    return {
        "commits": [commits(), commits("left")],
        "memberships": two_members(kind),
        "assignments": kind.held("a", 0, at(2)),
        "topics": at_end({"t": 1, "left": 1}),
        "epochs": [kind.epoch(2, at(2))],
    }


def gone_topic(kind: Kind) -> Parts:
    return left_topic(kind) | {"topics": at_end({"t": 1})}


class Case(NamedTuple):
    """A finding, the kinds of groups whose history has it, and that history."""

    finding: FindingKind
    kinds: tuple[Kind, ...]
    parts: Callable[[Kind], Parts]


def waiting(kind: Kind) -> Parts:
    return {"epochs": [kind.epoch(2, at(1), unassigned=2, members=("m",))]}


def failing(kind: Kind) -> Parts:
    return {"epochs": [kind.epoch(2, at(1), assignment_error=3)]}


def owned_twice(kind: Kind) -> Parts:
    """The rule is not broken in a share group, whose members read partitions together."""
    held = [*kind.held("a", 0, at(2)), *kind.held("b", 0, at(5))]
    rules = () if kind.type == "SHARE" else (Violation(Rule.ASSIGNED_TO_TWO, at(5), "g", "b", "also assigned to a"),)
    return {"assignments": held, "violations": rules}


CASES = (
    Case(FindingKind.RULES_BROKEN, EVERY, broken),
    Case(FindingKind.TWO_OWNERS, WITHOUT_SHARE, owned_twice),
    Case(FindingKind.TARGETS_WRONG, EVERY, wrong),
    Case(FindingKind.REBALANCE_STORM, EVERY, storm),
    Case(FindingKind.SLOW_REBALANCE, EVERY, slow),
    Case(FindingKind.NEVER_CONVERGES, EVERY, restless),
    Case(FindingKind.FLAPPING_MEMBER, EVERY, flapping),
    Case(FindingKind.ROLLING_DEPLOY, EVERY, deploy),
    # A classic group's record says of a static member that was replaced nothing of whether it was there.
    Case(FindingKind.STATIC_MEMBER_FENCED, WITH_EPOCHS, fenced),
    Case(FindingKind.STATIC_MEMBER_EXPIRED, EVERY, expired),
    # Members of a share group share partitions: their loads say nothing.
    Case(FindingKind.IMBALANCE, WITHOUT_SHARE, uneven),
    Case(FindingKind.EMPTY_MEMBERS, WITHOUT_SHARE, uneven),
    Case(FindingKind.MOVED_MORE_THAN_NEEDED, (CLASSIC, CONSUMER, STREAMS), swapped),
    # What there is to run is in no other log.
    Case(FindingKind.UNASSIGNED_WORK, (CONNECT,), waiting),
    Case(FindingKind.ASSIGNOR_FAILED, (CONNECT,), failing),
    Case(FindingKind.UNASSIGNED_PARTITIONS, (CLASSIC, CONSUMER, SHARE, STREAMS), without_owner),
    # No other type of group has this state.
    Case(FindingKind.NOT_READY, (STREAMS,), not_ready),
    Case(FindingKind.OFFSETS_REWOUND, tuple(kind for kind in EVERY if kind.names_topics), rewound),
    Case(FindingKind.OFFSETS_RESET, EVERY, set_back),
    Case(FindingKind.OFFSETS_EXPIRED, EVERY, removed),
    Case(FindingKind.FLOODS_THE_LOG, EVERY, flood),
    Case(FindingKind.RECORD_NEAR_LIMIT, EVERY, huge),
    # Brokers' logs are about the groups of __consumer_offsets.
    Case(FindingKind.DECISION_NOT_KEPT, without(EVERY, CONNECT), not_kept),
    # The line names the group, whatever it is by now.
    Case(FindingKind.CONVERSION_REFUSED, EVERY, refused),
    Case(FindingKind.NO_COORDINATOR, EVERY, not_loaded),
    Case(FindingKind.TRANSACTION_LEFT_OPEN, EVERY, left_open),
    Case(FindingKind.ZOMBIE_GROUP, EVERY, dead),
    # Tasks of a streams group may read any topic: only one that is gone is certain.
    Case(FindingKind.ZOMBIE_TOPIC, without(EVERY, STREAMS), left_topic),
    Case(FindingKind.ZOMBIE_TOPIC, EVERY, gone_topic),
    Case(FindingKind.INTERNAL_TOPICS_LEFT, (CLASSIC_STREAMS, STREAMS), left_internal_topics),
)


def found(kind: FindingKind, parts: Parts) -> bool:
    return any(row.kind == kind for row in findings(GroupHistory("g", 2 * DAY, **parts), LIMITS))


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.name)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.finding}, {case.parts.__name__}")
def test_a_finding_is_made_of_the_groups_that_it_speaks_of(case: Case, kind: Kind) -> None:
    assert found(case.finding, case.parts(kind)) == (kind in case.kinds)


LASTING = (
    FindingKind.IMBALANCE,
    FindingKind.EMPTY_MEMBERS,
    FindingKind.UNASSIGNED_WORK,
    FindingKind.UNASSIGNED_PARTITIONS,
    FindingKind.NOT_READY,
    FindingKind.ZOMBIE_GROUP,
    FindingKind.ZOMBIE_TOPIC,
)
"""Findings that something lasts: a state, or that nothing is committed."""


@pytest.mark.parametrize("kind", EVERY, ids=lambda kind: kind.name)
@pytest.mark.parametrize(
    "case", [case for case in CASES if case.finding in LASTING], ids=lambda case: case.parts.__name__
)
def test_nothing_is_said_to_last_until_now_where_the_records_since_are_lost(case: Case, kind: Kind) -> None:
    log = LOG_TOPICS[Family.CONNECT if kind is CONNECT else Family.GROUP]
    lost = LostRecords({(log, 0): [(1_000, 1_010)]})
    rows = {name: [*lost.all_known(rows)] for name, rows in case.parts(kind).items() if isinstance(rows, list)}
    assert not found(case.finding, case.parts(kind) | rows | {"lost": lost})


def test_a_topic_may_be_read_under_an_id_without_a_name() -> None:
    parts = left_topic(CONSUMER)
    parts["assignments"] = [row._replace(topic=None) for row in parts["assignments"]]
    assert not found(FindingKind.ZOMBIE_TOPIC, parts)


def test_there_is_a_case_of_every_finding() -> None:
    """But for those on what one kind of group alone has: share state (``test_share``), roles of tasks and epochs of
    topologies (``test_streams``), clients that lead (``test_mixtures``); and those that are about no group.
    """
    elsewhere = {kind for kind in FindingKind if kind.startswith("share_")}
    elsewhere |= {FindingKind.WARMUP_STUCK, FindingKind.TOPOLOGY_HALF_UPDATED, FindingKind.STOOD_STILL}
    elsewhere |= {FindingKind.ASSIGNMENT_NOT_TAKEN, FindingKind.MEMBER_LEFT_OUT, FindingKind.GENERATIONS_FAILED}
    elsewhere |= {FindingKind.WILL_NOT_LOAD, FindingKind.MAY_NOT_LOAD}
    elsewhere |= {FindingKind.CLIENTS_CLASH, FindingKind.COORDINATOR_AWAY, FindingKind.SHORT_LIVED_GROUPS}
    elsewhere |= {FindingKind.COMMITS_BY_TURNS, FindingKind.CONFIGS_DIFFER, FindingKind.COMMITTED_BEYOND_END}
    elsewhere |= {FindingKind.FEATURE_OFF, FindingKind.SETTINGS_OUT_OF_BOUNDS, FindingKind.GROUP_FULL}
    assert {case.finding for case in CASES} == set(FindingKind) - elsewhere

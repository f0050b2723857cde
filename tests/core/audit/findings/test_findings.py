"""Each finding on a history that has it, and on one that just does not."""

from typing import Any

import pytest

from coordinator_core.audit.finding_rows import FindingKind, FindingRow, make_finding, score
from coordinator_core.audit.findings.all_findings import findings, findings_of_cluster
from coordinator_core.audit.findings.committed_offsets import COMMIT_BYTES
from coordinator_core.audit.findings.of_cluster import NO_SIGNS, about_cluster, marked
from coordinator_core.audit.folds.commits import (
    MOST_KEPT,
    CommitFold,
    OpenTransaction,
    PartitionCommits,
    Removal,
    Rewind,
)
from coordinator_core.audit.folds.group_folds import RecordSizeFold
from coordinator_core.audit.folds.group_history import NO_SHARE_LOGS, NO_TOPICS, GroupHistory, TopicsAtEnd
from coordinator_core.cluster.clocks import CLOCK_TOLERANCE_MS
from coordinator_core.cluster.given_topics import TopicReach
from coordinator_core.groups.rules import Rule
from coordinator_core.groups.violations import Violation
from coordinator_core.history.knowledge import Knowledge
from coordinator_core.history.lost_records import NOTHING_LOST, LogExtent, LostRecords
from coordinator_core.history.memberships import NOT_SAID
from coordinator_core.history.rows import AWAY_LOST, AWAY_UNSEEN, REPLACED, MembershipRow, RebalanceRow, Revocation
from coordinator_core.records import Family, LogPosition, RecordType
from coordinator_core.wire.batch_format import HEADER_SIZE
from coordinator_core.wire.batch_writer import NewRecord, encode_batch
from coordinator_core.wire.record_codec import encode_key, encode_value
from jobs.report.worst import badness
from jobs.settings import load
from tests.core.audit.histories import all_shown, assignment, at, cause, epoch, member, rebalance
from tests.core.builders import GroupLog
from tests.core.known_topics import at_end

LIMITS = load(environment={}).findings
HOUR = 3_600_000
DAY = 24 * HOUR


def found(kind: FindingKind, now_ms: int = 10_000_000, **parts: Any) -> list[FindingRow]:
    return [row for row in findings(GroupHistory("g", now_ms, **parts), LIMITS) if row.kind == kind]


def commits(**more: Any) -> PartitionCommits:
    values: dict[str, Any] = {
        "topic": "t",
        "partition": 0,
        "commits": 10,
        "first": at(1),
        "last": at(100),
        "offset": 5,
        "rewinds": (),
        "removals": (),
    }
    return PartitionCommits(**(values | more))


def test_a_storm_names_the_member_that_drives_it() -> None:
    rows = [rebalance(e, at(e), causes=(cause("member_joined", f"m{e % 2}", at(e)),)) for e in range(2, 18)]
    members = [member("m0", at(1), client_id="flaky"), member("m1", at(1), client_id="calm")]
    rows[0] = rows[0]._replace(causes=(cause("member_joined", "m1", at(2)),))
    (storm,) = found(FindingKind.REBALANCE_STORM, rebalances=rows, memberships=members)
    assert (storm.value, storm.subject) == (16, "calm at 10.0.0.1")
    assert "causes: member joined 16;" in storm.detail
    assert storm.evidence[0] == at(2)
    assert found(FindingKind.REBALANCE_STORM, rebalances=rows[:9]) == []


def test_members_that_pass_partitions_round_make_a_storm() -> None:
    """One rebalance in which partitions are handed over belongs to the one before, the next ones do not."""
    kinds = ["member_joined"] + ["partitions_revoked"] * 17
    rows = [rebalance(e, at(e), causes=(cause(kind, "m0", at(e)),)) for e, kind in enumerate(kinds, 2)]
    (storm,) = found(FindingKind.REBALANCE_STORM, rebalances=rows)
    assert (storm.value, storm.evidence[1]) == (17, at(4))
    in_turn = [row._replace(causes=rows[n % 2].causes) for n, row in enumerate(rows)]
    assert found(FindingKind.REBALANCE_STORM, rebalances=in_turn) == []


def test_nothing_goes_on_in_a_group_that_is_deleted_or_has_no_members() -> None:
    """Although its last rebalance is of a short time ago."""
    rows = [rebalance(e, at(e), causes=(cause("member_joined", f"m{e % 2}", at(e)),)) for e in range(2, 18)]
    there = epoch(17, at(17), members=("m0",))
    ends = (there, there._replace(members=()), there._replace(is_open=False, ended=at(18), ended_by="group deleted"))
    storms = [found(FindingKind.REBALANCE_STORM, 200_000, rebalances=rows, epochs=[end]) for end in ends]
    assert [storm.is_open for (storm,) in storms] == [True, False, False]
    members, restarts = [], []
    for n in range(3):
        left, back = at(100 + 20 * n), at(110 + 20 * n)
        members += [member(f"old{n}", at(n), left, client_id=f"c{n}"), member(f"new{n}", back, client_id=f"c{n}")]
        restarts += [rebalance(2 * n + 5, left), rebalance(2 * n + 6, back)]
    deploys = [
        found(FindingKind.ROLLING_DEPLOY, 200_000, memberships=members, rebalances=restarts, epochs=[e]) for e in ends
    ]
    assert [deploy.is_open for (deploy,) in deploys] == [True, False, False]


@pytest.mark.parametrize("went", ["member_left_or_expired", "member_left", "member_expired", "member_timed_out"])
def test_clients_that_start_are_restarted_and_stop_make_no_storm(went: str) -> None:
    """Six clients come, go, come and go: 24 rebalances. One that goes on to come and go makes it a storm.

    Lines of brokers say how they went.
    """
    kinds = ("member_joined", went) * 2
    happened = [(kind, f"m{n}") for kind in kinds for n in range(6)]
    members = [member(f"m{n}", at(1), client_id=f"c{n}") for n in range(6)]
    rows = [rebalance(e, at(e), causes=(cause(*each, at(e)),), members_after=6) for e, each in enumerate(happened, 2)]
    assert found(FindingKind.REBALANCE_STORM, rebalances=rows, memberships=members) == []
    more = [rebalance(e, at(e), causes=(cause(kinds[e % 2], "m0", at(e)),), members_after=6) for e in range(30, 40)]
    (storm,) = found(FindingKind.REBALANCE_STORM, rebalances=rows + more, memberships=members)
    assert storm.value == 34


def test_rebalances_whose_causes_are_lost_may_be_those_of_a_deploy() -> None:
    unknown = (cause("unknown", None, at(1)),)
    lost = [rebalance(e, at(e), causes=unknown, missing="a record", history_complete=False) for e in range(2, 14)]
    assert found(FindingKind.REBALANCE_STORM, rebalances=lost) == []
    seen = [rebalance(e, at(e), causes=unknown) for e in range(20, 30)]
    (storm,) = found(FindingKind.REBALANCE_STORM, rebalances=lost + seen)
    assert (storm.level, storm.value, storm.history_complete) == ("warning", 22, False)


def test_rebalances_of_a_member_that_may_be_alone_may_disturb_nobody() -> None:
    """It comes and goes, and records are missing that tell whether another one is there."""
    lacks = {"missing": "a record", "history_complete": False, "members_before": None, "members_after": None}
    changed = (cause("topic_metadata_changed", None, at(1)),)
    rows = [rebalance(e, at(e), causes=changed, **lacks) for e in range(2, 22)]
    alone = [member("m", at(e), at(e + 1), missing="a record") for e in range(2, 22, 2)]
    assert found(FindingKind.REBALANCE_STORM, rebalances=rows, memberships=alone) == []
    other = member("other", at(1), at(30), missing="a record")
    (storm,) = found(FindingKind.REBALANCE_STORM, rebalances=rows, memberships=[*alone, other])
    assert (storm.level, storm.value) == ("warning", 20)


def test_a_job_that_runs_alone_disturbs_nobody() -> None:
    rows = [
        rebalance(e, at(e), causes=(cause("member_joined", "m", at(e)),), members_before=e % 2, members_after=1 - e % 2)
        for e in range(2, 40)
    ]
    assert found(FindingKind.REBALANCE_STORM, rebalances=rows, memberships=[member("m", at(1))]) == []


def test_clients_that_drive_a_storm_alike_are_named_in_every_process_alike() -> None:
    """Sets of texts have another order in each process, so that a tie is decided by name."""
    names = ("zebra", "ape", "mule", "fox")
    members = [member(name, at(1), client_id=name) for name in names]
    rows = [
        rebalance(e, at(e), causes=tuple(cause("member_joined", name, at(e)) for name in names)) for e in range(2, 14)
    ]
    (storm,) = found(FindingKind.REBALANCE_STORM, rebalances=rows, memberships=members)
    assert storm.subject == "ape at 10.0.0.1"


def test_two_storms_far_apart_are_two() -> None:
    early = [rebalance(e, at(e)) for e in range(2, 14)]
    late = [rebalance(e, at(e, 5_000_000 + e)) for e in range(20, 31)]
    assert [row.value for row in found(FindingKind.REBALANCE_STORM, rebalances=early + late)] == [12, 11]


def test_rebalances_without_times_are_no_storm() -> None:
    assert found(FindingKind.REBALANCE_STORM, rebalances=[rebalance(e, at(e, -1)) for e in range(2, 14)]) == []


def test_a_finding_on_records_without_times_is_not_complete() -> None:
    """What was written together, such as the leave and the return of a static member, is not known."""
    for time_s, is_complete in ((60, True), (-0.001, False)):
        (row,) = found(
            FindingKind.STATIC_MEMBER_EXPIRED,
            memberships=[member("b", at(5), at(60, time_s), instance_id="i", away_since=at(10))],
        )
        assert row.history_complete is is_complete


def test_a_slow_rebalance_names_who_held_it_up() -> None:
    slow = rebalance(2, at(2), duration_min_ms=61_000, delayed_by="m1", finished=at(63))
    quick = rebalance(3, at(70), duration_min_ms=59_000)
    members = [member("m1", at(1))]
    (row,) = found(FindingKind.SLOW_REBALANCE, rebalances=[slow, quick], memberships=members)
    assert (row.value, row.subject) == (61_000, "client-m1 at 10.0.0.1")


def test_a_rebalance_under_way_counts_until_now() -> None:
    lasting = {"outcome": "open", "is_open": True, "finished": None, "duration_min_ms": 300_000}
    row = rebalance(2, at(2), behind=("m7",), delayed_by="m7", **lasting)
    (slow,) = found(FindingKind.SLOW_REBALANCE, now_ms=302_000, rebalances=[row])
    assert (slow.value, slow.subject) == (300_000, "m7")


def test_who_is_behind_is_not_to_blame_where_the_rebalance_names_no_member() -> None:
    """A broker was down meanwhile, or several members are behind."""
    row = rebalance(2, at(2), outcome="open", is_open=True, finished=None, duration_min_ms=300_000, behind=("m7",))
    (slow,) = found(FindingKind.SLOW_REBALANCE, now_ms=302_000, rebalances=[row])
    assert (slow.subject, slow.detail) == (None, "the rebalance to 2 has taken 5 min so far")


def test_a_rebalance_that_waited_for_a_member_until_it_was_removed_is_slow() -> None:
    """Whatever superseded it; unless the group never converges, which tells all of its rebalances."""
    waited = {"outcome": "superseded", "finished": None, "duration_min_ms": 63_000, "delayed_by": "m1"}
    expired = cause("member_left_or_expired", "m1", at(65))._replace(hint="expired: it did not revoke")
    rows = [rebalance(2, at(2), **waited), rebalance(3, at(65), causes=(expired,))]
    (slow,) = found(FindingKind.SLOW_REBALANCE, rebalances=rows)
    told = "the rebalance to 2 took 1 min 3 s and was not completed, delayed by m1; expired: it did not revoke"
    assert (slow.value, slow.subject, slow.detail) == (63_000, "m1", told)
    assert found(FindingKind.SLOW_REBALANCE, rebalances=[rows[0]._replace(delayed_by=None), rows[1]]) == []
    without_end = [rows[0], rebalance(3, at(400))]
    assert found(FindingKind.SLOW_REBALANCE, rebalances=without_end) == []
    assert len(found(FindingKind.NEVER_CONVERGES, rebalances=without_end)) == 1


def test_a_rebalance_that_may_have_ended_in_lost_records_is_not_slow() -> None:
    lasting = {"outcome": "open", "is_open": True, "finished": None, "duration_min_ms": None}
    rows = [rebalance(2, at(2), outcome="superseded"), rebalance(3, at(3), **lasting)]
    for kind in (FindingKind.SLOW_REBALANCE, FindingKind.NEVER_CONVERGES):
        assert found(kind, now_ms=10_000_000, rebalances=rows) == []


def test_a_rebalance_in_progress_has_lasted_until_the_log_of_its_group_ends() -> None:
    lasting = {"outcome": "open", "is_open": True, "finished": None, "duration_min_ms": None}
    row = rebalance(2, at(2), **lasting)

    def lasted(lost: LostRecords = NOTHING_LOST) -> list[int | None]:
        history = GroupHistory.gather("g", 302_000, [rebalance(1, at(1)), row], NO_TOPICS, NO_SHARE_LOGS, lost)
        is_stuck, *_ = badness(history.rebalances[1])
        assert is_stuck == (not lost.ranges), "the report shows it first"
        return [row.duration_min_ms for row in history.rebalances]

    assert lasted() == [0, 300_000]
    assert lasted(LostRecords({("__consumer_offsets", 0): [(5, 9)]})) == [0, None], "it may have ended among them"


def test_who_is_behind_while_a_broker_was_away_is_not_why_a_group_never_converges() -> None:
    """Leader epochs or the metadata log show it; ``slow_rebalance`` says why it names no member."""
    more = {"outcome": "superseded", "behind": ("m1",), "members_behind": 1}
    rows = [rebalance(2, at(200), broker_away=True, **more), rebalance(3, at(300), **more)]
    (row,) = found(FindingKind.NEVER_CONVERGES, now_ms=600_000, rebalances=rows)
    assert row.detail.endswith("m1 was behind in 1 of them")
    assert row.value == 300_000, "from the second one on"
    rows = [row._replace(broker_away=True) for row in rows]
    assert found(FindingKind.NEVER_CONVERGES, now_ms=600_000, rebalances=rows) == []
    (slow,) = found(
        FindingKind.SLOW_REBALANCE, rebalances=[rebalance(2, at(2), duration_min_ms=61_000, broker_away=True)]
    )
    assert slow.detail.endswith(
        "took 1 min 1 s; a broker was down meanwhile, or another one took over as the coordinator"
    )


def test_superseded_rebalances_without_rest_never_converge() -> None:
    rows = [rebalance(e, at(100 * e), outcome="superseded", behind=("m1",), members_behind=1) for e in range(2, 6)]
    (row,) = found(FindingKind.NEVER_CONVERGES, now_ms=600_000, rebalances=rows)
    assert (row.value, row.subject) == (400_000, "m1")
    rest = [rows[0], rebalance(3, at(300)), *rows[2:]]
    assert found(FindingKind.NEVER_CONVERGES, now_ms=600_000, rebalances=rest) == []


def test_a_group_whose_clients_are_restarted_cannot_settle_yet() -> None:
    """Of 30 clients one is restarted every 20 s: each time all of them are behind. That is no fault, unless one of them
    holds the others up all the time.
    """
    rows, gone = list[RebalanceRow](), "member_left_or_expired"
    members = [member(f"old{n}", at(1), at(20 * n + 20), client_id=f"c{n}") for n in range(30)]
    members += [member(f"new{n}", at(20 * n + 30), client_id=f"c{n}") for n in range(30)]
    for n in range(30):
        many = {"outcome": "superseded", "members_behind": 30, "behind": tuple(f"old{i}" for i in range(10, 20))}
        many |= {"members_before": 30, "members_after": 30}
        rows.append(rebalance(2 * n + 2, at(20 * n + 20), causes=(cause(gone, f"old{n}", at(20 * n + 20)),), **many))
        came = (cause("member_joined", f"new{n}", at(20 * n + 30)),)
        rows.append(rebalance(2 * n + 3, at(20 * n + 30), causes=came, **many))
    parts: dict[str, Any] = {"now_ms": 700_000, "memberships": members}
    assert found(FindingKind.NEVER_CONVERGES, rebalances=rows, **parts) == []
    waited = [*rows[:5], rows[5]._replace(duration_min_ms=61_000, delayed_by="old9", finished=None), *rows[6:]]
    assert [row.subject for row in found(FindingKind.SLOW_REBALANCE, rebalances=waited, **parts)] == ["c9 at 10.0.0.1"]
    crashes = [row._replace(causes=rows[0].causes) for row in rows[:8]] + rows[8:]
    (row,) = found(FindingKind.NEVER_CONVERGES, rebalances=crashes, **parts)
    assert (row.value, row.subject) == (680_000, None), "nobody alone is behind"
    asked = (Revocation("new0", 3, at(32), None, None), Revocation("old29", 1, at(32), at(33), 1_000))
    stuck = [row._replace(revocations=asked) for row in rows]
    (row,) = found(FindingKind.NEVER_CONVERGES, rebalances=stuck, **parts)
    assert (row.subject, row.detail.split("; ")[1]) == ("c0 at 10.0.0.1", "c0 at 10.0.0.1 was behind in 60 of them")


def test_members_that_are_behind_alike_are_not_to_blame() -> None:
    """Who waits for others is behind, too: only one that is so more often than all others is named."""
    more = {"outcome": "superseded", "members_behind": 2}
    rows = [rebalance(each, at(100 * each), behind=("m1", "m2"), **more) for each in range(2, 8)]
    (row,) = found(FindingKind.NEVER_CONVERGES, now_ms=900_000, rebalances=rows)
    assert (row.subject, "behind" in row.detail) == (None, False)
    rows[0] = rows[0]._replace(behind=("m2",), members_behind=1)
    (row,) = found(FindingKind.NEVER_CONVERGES, now_ms=900_000, rebalances=rows)
    assert row.subject == "m2"
    asked = Revocation("m1", 3, at(210), None, None)
    rows[0] = rebalance(2, at(200), behind=("m1", "m2"), revocations=(asked,), **more)
    (row,) = found(FindingKind.NEVER_CONVERGES, now_ms=900_000, rebalances=rows)
    assert row.detail.endswith("m1 was behind in 6 of them"), "it was asked once, and did not answer"
    rows[0] = rebalance(2, at(200), behind=("m2",), **(more | {"members_behind": 1}))
    others = [row._replace(members_behind=30) for row in rows[1:]]
    (row,) = found(FindingKind.NEVER_CONVERGES, now_ms=900_000, rebalances=[rows[0], *others])
    assert row.subject is None, "most of the time all were behind"


def test_a_static_member_that_is_away_holds_nobody_up() -> None:
    """It left, to return within its session: who is there reaches each target at once (KIP-345)."""
    waits = {"outcome": "superseded", "behind": ("m1",), "members_behind": 1, "delayed_by": "m1", "finished": None}
    rows = [
        rebalance(4, at(120), duration_min_ms=200_000, **waits),
        rebalance(5, at(320), duration_min_ms=280_000, delayed_by="m2", finished=at(600)),
    ]

    def kinds(left: int, back: int | None, rows: list[RebalanceRow] = rows) -> list[tuple[str, str | None]]:
        static = {"instance_id": "i", "away_since": at(left), "went_by": None if back is None else REPLACED}
        there = [member("m1", at(1), None if back is None else at(back), **static)]
        there += [member("m2", at(back), replaces="m1", instance_id="i")] if back is not None else []
        history = GroupHistory("g", 600_000, rebalances=rows, memberships=there)
        return [(row.kind, row.subject) for row in findings(history, LIMITS)]

    assert kinds(60, 600) == []
    assert kinds(60, 400) == [("slow_rebalance", "instance i")], "it was back for 200 s"
    assert kinds(250, 600) == [("slow_rebalance", "instance i")], "it was still there for 130 s"
    lasts = {"outcome": "open", "is_open": True, "delayed_by": "m1", "behind": ("m1",), "members_behind": 1}
    assert kinds(60, None, [rows[0], rows[1]._replace(**lasts, finished=None)]) == []
    removed = [rows[0]._replace(behind=(), members_behind=0), rows[1]._replace(delayed_by=None, duration_min_ms=0)]
    removed[1] = removed[1]._replace(causes=(cause("static_member_left", "m1", at(320)),))
    assert kinds(60, 319, removed) == []


def test_a_rebalance_of_which_the_end_is_lost_may_have_settled_the_group() -> None:
    """Records of another group are missing: what was superseded before counts, and nothing after it."""
    lost = {"outcome": "unknown", "finished": None, "history_complete": False}
    rows = [rebalance(e, at(100 * e), outcome="superseded") for e in (2, 3)] + [rebalance(6, at(600), **lost)]
    (row,) = found(FindingKind.NEVER_CONVERGES, now_ms=2_000_000, rebalances=rows)
    assert (row.value, row.detail) == (400_000, "3 rebalances, 2 to 6, without a stable assignment for 6 min 40 s")
    apart = [rebalance(e, at(100 * e), **lost) for e in (2, 9)]
    assert found(FindingKind.NEVER_CONVERGES, now_ms=2_000_000, rebalances=apart) == []


def test_a_client_that_comes_and_goes_flaps() -> None:
    rows = [member(f"m{n}", at(10 * n), at(10 * n + 5 + n), client_id="c") for n in range(5)]
    other = member("other", at(0), client_id="o")
    (row,) = found(FindingKind.FLAPPING_MEMBER, memberships=[other, *rows])
    assert (row.value, row.subject) == (5, "c at 10.0.0.1")
    assert row.detail == "c at 10.0.0.1 joined and left 5 times, after 5.0 s to 9.0 s each"
    assert found(FindingKind.FLAPPING_MEMBER, memberships=[other, *rows[1:]]) == []


def test_a_task_of_a_sink_connector_flaps_only_if_its_sessions_expire() -> None:
    """Workers that rebalance close its consumer, and open it elsewhere under the same client id."""
    rows = [member(f"m{n}", at(10 * n), at(10 * n + 5), client_id="connector-consumer-s-0") for n in range(5)]
    other = member("other", at(0), client_id="connector-consumer-s-1")
    assert found(FindingKind.FLAPPING_MEMBER, memberships=[other, *rows]) == []
    failed = [row._replace(hint=NOT_SAID) for row in rows]
    assert len(found(FindingKind.FLAPPING_MEMBER, memberships=[other, *failed])) == 1


def test_a_job_that_runs_now_and_then_does_not_flap() -> None:
    """It leaves the group empty each time, also with several clients; one whose sessions expire fails."""
    rows = [member(f"m{n}", at(10 * n), at(10 * n + 5), client_id="c") for n in range(6)]
    also = [member(f"k{n}", at(10 * n + 1), at(10 * n + 6), client_id="d") for n in range(6)]
    assert found(FindingKind.FLAPPING_MEMBER, memberships=rows) == []
    assert found(FindingKind.FLAPPING_MEMBER, memberships=rows + also) == []
    failed = [row._replace(hint="expired: its last commit was 5000 ms before") for row in rows]
    assert [row.value for row in found(FindingKind.FLAPPING_MEMBER, memberships=failed)] == [6]


def test_clients_with_one_name_are_not_one_client() -> None:
    rows = [member(f"m{n}", at(n), at(50 + n), client_id="c") for n in range(6)]
    assert found(FindingKind.FLAPPING_MEMBER, memberships=rows) == []


def test_restarts_one_after_the_other_are_a_rolling_deploy() -> None:
    members, rows = [], []
    for n in range(3):
        left, back = at(100 + 20 * n), at(110 + 20 * n)
        members += [member(f"old{n}", at(n), left, client_id=f"c{n}"), member(f"new{n}", back, client_id=f"c{n}")]
        rows += [rebalance(2 * n + 5, left), rebalance(2 * n + 6, back)]
    (row,) = found(FindingKind.ROLLING_DEPLOY, memberships=members, rebalances=rows)
    assert row.value == 6
    counts = {None: ("one after the other: 6 rebalances;", False), 2: ("6 rebalances, 2 moves;", True)}
    for moved, (says, is_complete) in counts.items():
        (known,) = found(
            FindingKind.ROLLING_DEPLOY, memberships=members, rebalances=[rows[0]._replace(units_moved=moved), *rows[1:]]
        )
        assert says in known.detail
        assert known.history_complete == is_complete
    grown = cause("topic_grown", None, at(100, 300_000))._replace(source="cluster metadata")
    later = [*rows, rebalance(20, at(300), causes=(grown,))]
    (row,) = found(FindingKind.ROLLING_DEPLOY, memberships=members, rebalances=later)
    assert row.value == 6, "the record of another log has the offset of a departure"
    static = [each._replace(instance_id=each.client_id) for each in members]
    assert found(FindingKind.ROLLING_DEPLOY, memberships=static, rebalances=rows) == []
    went_on = [each._replace(member_id=str(each.client_id)) for each in members]
    assert found(FindingKind.ROLLING_DEPLOY, memberships=went_on, rebalances=rows) == []
    together = [each._replace(left=at(100)) if each.left is not None else each for each in members]
    assert found(FindingKind.ROLLING_DEPLOY, memberships=together, rebalances=rows) == []


@pytest.mark.parametrize(("group_type", "has_remedy"), [("CONSUMER", True), ("SHARE", False), ("STREAMS", False)])
def test_static_members_are_advice_for_groups_that_have_them(group_type: str, has_remedy: bool) -> None:
    """A group id may name groups of several types, one after the other: that of the members that left counts."""
    members, rows = [], []
    for n in range(3):
        left, back = at(100 + 20 * n), at(110 + 20 * n)
        members += [
            member(f"old{n}", at(n), left, client_id=f"c{n}", group_type=group_type),
            member(f"new{n}", back, client_id=f"c{n}", group_type=group_type),
        ]
        rows += [rebalance(2 * n + 5, left), rebalance(2 * n + 6, back)]
    for now in ("CONSUMER", "SHARE"):
        epochs = [epoch(10, at(160), group_type=now)]
        (row,) = found(FindingKind.ROLLING_DEPLOY, memberships=members, rebalances=rows, epochs=epochs)
        assert ("static members" in row.detail) == has_remedy


@pytest.mark.parametrize(
    ("count", "apart_s", "groups"), [(11, 5, {None}), (10, 5, set(range(10))), (11, 61, {0, None})]
)
def test_deploys_of_many_groups_at_once_are_one_finding(count: int, apart_s: int, groups: set[int | None]) -> None:
    """One that began more than a minute before the others is told by itself."""

    def deploy(number: int) -> FindingRow:
        begun = at(100 if number else 100 - apart_s)
        times: dict[str, Any] = {"since_ms": begun.timestamp_ms, "until_ms": begun.timestamp_ms, "complete": True}
        return make_finding(FindingKind.ROLLING_DEPLOY, 4, 4, "restarted", [begun], group_id=f"g{number}", **times)

    rows = [deploy(number) for number in range(count + (apart_s > 60))]
    of_cluster, covering = about_cluster(NO_SIGNS, at_end({}), rows, LIMITS, all_shown)
    told = [*of_cluster, *(row for row in marked(rows, covering) if not row.covered)]
    assert {None if row.group_id is None else int(row.group_id[1:]) for row in told} == groups
    for row in of_cluster:
        assert row.value == 4 * 11
        assert row.detail.startswith("the clients of 11 groups (")


def test_sessions_that_end_together_are_a_finding_of_the_cluster() -> None:
    def group(name: str, when_ms: int, members: int, back_as: str = "", **how: str) -> GroupHistory:
        gone = [member(f"m{n}", at(1), at(50, when_ms + n), group_id=name, **how) for n in range(members)]
        back = [member(f"m{n}{back_as}", at(60, when_ms + 900), group_id=name) for n in range(members)]
        return GroupHistory(name, 10_000_000, memberships=gone + back)

    def cluster(*histories: GroupHistory) -> list[FindingRow]:
        return [row for row in findings_of_cluster(histories, LIMITS, all_shown) if row.kind == FindingKind.STOOD_STILL]

    (row,) = cluster(group("a", 50_000, 3), group("b", 50_500, 2))
    assert (row.group_id, row.value, row.since_ms, row.until_ms) == (None, 5, 50_000, 51_400)
    assert "5 members of 2 groups (a, b)" in row.detail
    assert cluster(group("a", 50_000, 5)) == []
    assert cluster(group("a", 50_000, 2), group("b", 50_000, 2)) == []
    assert cluster(group("a", 50_000, 3), group("b", 53_000, 2)) == []
    assert cluster(group("a", 50_000, 3, back_as="x"), group("b", 50_000, 2)) == []
    by_itself = ("left: it committed 9 ms before", "it did not poll in time: it was gone 5 min after it got partitions")
    for how in ({"went_by": "leave"}, *({"hint": hint} for hint in by_itself)):
        assert cluster(group("a", 50_000, 3, **how), group("b", 50_000, 2)) == []
    both = [group("a", 150_000, 3), group("b", 150_500, 2)]
    for whole_from_ms in (89_999, 90_000):
        known = Knowledge(whole_from_ms=whole_from_ms)
        (row,) = findings_of_cluster(both, LIMITS, known.shows_all_since)
        assert row.history_complete == (whole_from_ms < 90_000), "members of other groups may be missing"


def test_a_client_with_two_members_is_behind_once_in_a_rebalance() -> None:
    members = [member("m1", at(1), client_id="c"), member("m2", at(1), client_id="c")]
    rows = [rebalance(e, at(100 * e), outcome="superseded", behind=("m1", "m2"), members_behind=2) for e in range(2, 6)]
    (row,) = found(FindingKind.NEVER_CONVERGES, now_ms=600_000, rebalances=rows, memberships=members)
    assert "c at 10.0.0.1 was behind in 4 of them" in row.detail


def test_a_unit_with_two_owners() -> None:
    held = [assignment("a", 0, at(2)), assignment("b", 0, at(5), at(9)), assignment("b", 1, at(5))]
    broken = [Violation(Rule.ASSIGNED_TO_TWO, at(5), "g", "b", "t-0 is also assigned to a")]
    (row,) = found(FindingKind.TWO_OWNERS, assignments=held, violations=broken)
    assert (row.value, row.score, row.evidence) == (4_000, 100.0, (at(5), at(9)))
    assert row.detail == (
        "1 partition had two owners for 4.0 s: a and b had t-0; records that both read in this time are processed twice"
    )
    assert found(FindingKind.TWO_OWNERS, assignments=held) == []


def test_static_members_fenced_and_expired() -> None:
    old = member("a", at(1), at(5), instance_id="i", went_by="static replacement")
    new = member("b", at(5), at(60), instance_id="i", replaces="a", away_since=at(10))
    rows = [old, new]
    assert [row.subject for row in found(FindingKind.STATIC_MEMBER_FENCED, memberships=rows)] == ["instance i"]
    # It came back, and its session expired: what ended that stay counts.
    again = [old, new, member("a", at(70), at(80), instance_id="i")]
    assert [row.value for row in found(FindingKind.STATIC_MEMBER_FENCED, memberships=again)] == [1]
    assert [row.evidence for row in found(FindingKind.STATIC_MEMBER_EXPIRED, memberships=rows)] == [(at(60),)]
    silent = [old, new._replace(away_since=None, hint=NOT_SAID)]
    (row,) = found(FindingKind.STATIC_MEMBER_EXPIRED, memberships=silent)
    assert row.detail.endswith("; the session expired, or a request removed it: only a broker's log tells which")
    both = [*silent, member("c", at(1), at(60), instance_id="k", went_by="expiry")]
    (row,) = found(FindingKind.STATIC_MEMBER_EXPIRED, memberships=both)
    assert "; the session expired, or a request removed 1 of them" in row.detail
    told = [old, new._replace(went_by="expiry")]
    assert ["removed" in row.detail for row in found(FindingKind.STATIC_MEMBER_EXPIRED, memberships=told)] == [False]
    removed = [old, new._replace(hint="removed by a request: it had been away for 50 s, its session timeout is 5 min")]
    assert found(FindingKind.STATIC_MEMBER_EXPIRED, memberships=removed) == []
    for may_be_away in ({"away_since": at(3)}, {"hint": AWAY_UNSEEN}, {"hint": AWAY_LOST}):
        returned = [old._replace(**may_be_away), new._replace(left=None)]
        assert found(FindingKind.STATIC_MEMBER_FENCED, memberships=returned) == []


@pytest.mark.parametrize(
    ("state", "members", "is_empty"),
    [("EMPTY", (), True), ("EMPTY", None, True), (None, None, False), ("STABLE", ("b",), False)],
)
def test_a_group_of_a_static_member_that_is_gone_may_have_no_members_since(
    state: str | None, members: tuple[str, ...] | None, *, is_empty: bool
) -> None:
    """Its state tells that, also where it is not known who was in it before."""
    gone = member("a", at(1), at(60), instance_id="i", away_since=at(10))
    present = epoch(3, at(60), state=state, members=members)
    (expired,) = found(FindingKind.STATIC_MEMBER_EXPIRED, memberships=[gone], epochs=[present])
    assert expired.detail.endswith("; the group has no members since") == is_empty


MEMBERS = [member("a", at(1)), member("b", at(1))]


def test_a_rebalance_that_only_takes_away_leaves_nobody_empty() -> None:
    """With the cooperative protocol a joiner gets what is its in the next rebalance."""
    members = [member("a", at(1)), member("b", at(2))]
    held = [assignment("a", 0, at(1)), assignment("a", 1, at(1), at(2)), assignment("b", 1, at(100, 100_000))]
    first, second = rebalance(2, at(2), finished=at(2)), rebalance(3, at(100, 100_000), finished=at(100, 100_000))
    parts = {"epochs": [epoch(3, at(3))], "memberships": members, "assignments": held}
    revoked = second._replace(causes=(cause("partitions_revoked", None, at(2)),))
    assert found(FindingKind.EMPTY_MEMBERS, rebalances=[first, second], **parts)
    assert not found(FindingKind.EMPTY_MEMBERS, rebalances=[first, revoked], **parts)


def test_imbalance_and_empty_members() -> None:
    held = [assignment("a", number, at(2)) for number in range(4)]
    parts = {"memberships": MEMBERS, "assignments": held, "rebalances": [rebalance(2, at(3))]}
    (uneven,) = found(FindingKind.IMBALANCE, epochs=[epoch(2, at(2))], **parts)
    assert (uneven.value, uneven.subject) == (4, "client-a at 10.0.0.1")
    (empty,) = found(FindingKind.EMPTY_MEMBERS, epochs=[epoch(2, at(2))], **parts)
    assert (empty.value, "client-b" in empty.detail) == (1, True)
    assert (uneven.history_complete, empty.history_complete) == (True, True)
    # The group was converted: in this log, members have nothing any more.
    gone = epoch(2, at(2), ended=at(9, 90_000), ended_by="group upgraded")
    (empty,) = found(FindingKind.EMPTY_MEMBERS, epochs=[gone], **parts)
    assert (empty.until_ms, empty.is_open) == (90_000, False)
    # How many stable epochs there were is not known where a part of the history is not.
    lost = rebalance(1, at(1), outcome="unknown", history_complete=False)
    for kind in (FindingKind.IMBALANCE, FindingKind.EMPTY_MEMBERS):
        (row,) = found(kind, epochs=[epoch(2, at(2))], **parts | {"rebalances": [lost, *parts["rebalances"]]})
        assert not row.history_complete
    parts["memberships"] = [MEMBERS[0], MEMBERS[1]._replace(subscribed_topics=("other",))]
    assert found(FindingKind.IMBALANCE, epochs=[epoch(2, at(2))], **parts) == []


@pytest.mark.parametrize(("unassigned", "delay_ms"), [(2, None), (None, 300_000)])
def test_work_that_waits_for_a_worker_is_not_spread_unevenly(unassigned: int | None, delay_ms: int | None) -> None:
    """While the scheduled rebalance delay of Connect runs (KIP-415), on KIP-848 and with the classic protocol."""
    held = [assignment("a", number, at(2)) for number in range(4)]
    done = rebalance(2, at(2), finished=at(3))
    parts = {"memberships": MEMBERS, "assignments": held}
    for kind in (FindingKind.IMBALANCE, FindingKind.EMPTY_MEMBERS):
        assert found(kind, epochs=[epoch(2, at(2))], rebalances=[done], **parts)
        waiting = {"epochs": [epoch(2, at(2), unassigned=unassigned)], "rebalances": [done._replace(delay_ms=delay_ms)]}
        assert not found(kind, **waiting, **parts)


@pytest.mark.parametrize(("assignor", "kinds"), [("uniform", 1), ("range", 0)])
def test_a_sticky_assignor_that_swaps_partitions_moves_too_much(assignor: str, kinds: int) -> None:
    held = [
        assignment("a", 0, at(2), at(5)),
        assignment("b", 1, at(2), at(5)),
        assignment("b", 0, at(6)),
        assignment("a", 1, at(6)),
    ]
    rows = [rebalance(2, at(3)), rebalance(3, at(5), finished=at(6))]
    epochs = [epoch(2, at(2), ended=at(5), ended_by="next epoch"), epoch(3, at(5), assignor=assignor)]
    moved = found(
        FindingKind.MOVED_MORE_THAN_NEEDED, memberships=MEMBERS, assignments=held, rebalances=rows, epochs=epochs
    )
    assert [row.value for row in moved] == [2] * kinds
    said = "the rebalance to 3 moved 2 partitions between members that stayed; no member joined: no move was needed"
    assert [row.detail for row in moved] == [said] * kinds


@pytest.mark.parametrize(("rack", "kinds"), [("a", 0), (None, 1), ("", 1)])
def test_members_with_racks_may_have_to_move_more(rack: str | None, kinds: int) -> None:
    """A leader of Kafka's own client gives what has no replica in its owner's rack to another one (KIP-881)."""
    times = {"group_type": "CLASSIC"}
    held = [
        *(assignment(name, number, at(2), at(5), **times) for number, name in enumerate("ab")),
        *(assignment(name, number, at(5), **times) for number, name in enumerate("ba")),
    ]
    rows = [rebalance(2, at(3), **times), rebalance(3, at(5), **times)]
    epochs = [epoch(3, at(5), assignor="cooperative-sticky", **times)]
    there = [row._replace(rack_id=rack, **times) for row in MEMBERS]
    parts = {"memberships": there, "assignments": held, "rebalances": rows, "epochs": epochs}
    assert len(found(FindingKind.MOVED_MORE_THAN_NEEDED, **parts)) == kinds


@pytest.mark.parametrize(("before", "after", "kinds"), [("range", "uniform", 0), ("uniform", "range", 1)])
def test_the_assignor_is_that_of_the_life_in_which_something_moved(before: str, after: str, kinds: int) -> None:
    """The group was deleted and created again: both lives have an epoch of each number."""
    held = [
        assignment("a", 0, at(2), at(5)),
        assignment("b", 1, at(2), at(5)),
        assignment("b", 0, at(6)),
        assignment("a", 1, at(6)),
    ]
    rows = [rebalance(2, at(3)), rebalance(3, at(5), finished=at(6))]
    epochs = [epoch(3, at(5), assignor=before, ended=at(50), ended_by="next epoch"), epoch(3, at(50), assignor=after)]
    parts = {"memberships": MEMBERS, "assignments": held, "rebalances": rows, "epochs": epochs}
    assert len(found(FindingKind.MOVED_MORE_THAN_NEEDED, **parts)) == kinds
    streams = [*epochs[:1], epoch(3, at(50), group_type="STREAMS", assignor=None)]
    assert len(found(FindingKind.MOVED_MORE_THAN_NEEDED, **{**parts, "epochs": streams})) == kinds


def test_members_of_a_share_group_have_no_uneven_load_in_its_later_life_either() -> None:
    """The id named a share group first, whose members had the same partitions, or none."""
    shared: dict[str, Any] = {"group_type": "SHARE"}
    parts: dict[str, Any] = {
        "epochs": [epoch(3, at(5), ended=at(45), ended_by="group deleted", **shared), epoch(2, at(50))],
        "rebalances": [rebalance(3, at(5), **shared), rebalance(2, at(50))],
        "memberships": [*(member(name, at(1), at(40), **shared) for name in "ab"), member("c", at(49))],
        "assignments": [*(assignment("a", n, at(2), at(40), **shared) for n in range(4)), assignment("c", 0, at(49))],
    }
    kinds = (FindingKind.EMPTY_MEMBERS, FindingKind.IMBALANCE, FindingKind.MOVED_MORE_THAN_NEEDED)
    assert [row for kind in kinds for row in found(kind, **parts)] == []


def test_a_list_that_is_cut_says_so() -> None:
    failed = [connect_epoch(number, 1, assignment_error=4) for number in range(2, 9)]
    (row,) = found(FindingKind.ASSIGNOR_FAILED, epochs=failed)
    assert row.detail.endswith("6 (error 4) and 2 more")


def test_a_member_that_joins_needs_its_share() -> None:
    members = [member("a", at(1)), member("b", at(4))]
    held = [assignment("a", 0, at(2)), assignment("a", 1, at(2), at(5)), assignment("b", 1, at(6))]
    rows = [rebalance(2, at(3)), rebalance(3, at(4), finished=at(6))]
    epochs = [epoch(2, at(2), ended=at(4), ended_by="next epoch"), epoch(3, at(4))]
    parts = {"memberships": members, "assignments": held, "rebalances": rows, "epochs": epochs}
    assert found(FindingKind.MOVED_MORE_THAN_NEEDED, **parts) == []


def test_partitions_of_a_settled_group_that_nobody_has() -> None:
    parts = {"epochs": [epoch(2, at(2))], "memberships": MEMBERS, "assignments": [assignment("a", 0, at(2))]}
    (row,) = found(FindingKind.UNASSIGNED_PARTITIONS, topics=at_end({"t": 3}), **parts)
    assert (row.value, row.subject) == (2, "t")
    assert found(FindingKind.UNASSIGNED_PARTITIONS, **parts) == []


def test_a_rewind_counts_where_the_partition_changed_hands() -> None:
    taken = at(20)
    held = [assignment("a", 0, at(2), at(19)), assignment("b", 0, taken)]
    there = epoch(3, at(18), members=("a", "b"))
    parts = {"assignments": held, "rebalances": [rebalance(3, at(18), finished=taken)], "epochs": [there]}
    soon = [commits(rewinds=(Rewind(at(25), 90, 40),))]
    (row,) = found(FindingKind.OFFSETS_REWOUND, commits=soon, **parts)
    assert (row.value, row.evidence) == (50, (at(18), at(25)))
    # All members left meanwhile, and an administrator reset the offsets at once.
    left = [there._replace(ended=at(22)), epoch(4, at(22), members=())]
    assert found(FindingKind.OFFSETS_REWOUND, commits=soon, **parts | {"epochs": left}) == []
    assert len(found(FindingKind.OFFSETS_RESET, commits=soon, epochs=left)) == 1
    late = [commits(rewinds=(Rewind(at(500), 90, 40),))]
    assert found(FindingKind.OFFSETS_REWOUND, commits=late, **parts) == []
    # What the new owner itself had committed since: its requests overtook each other.
    for before, count in ((19, 1), (24, 0)):
        back = [commits(rewinds=(Rewind(at(25), 90, 40, log_offset_before=before),))]
        assert len(found(FindingKind.OFFSETS_REWOUND, commits=back, **parts)) == count
    # The topic was made again meanwhile: the commit before may be a position that a consumer carried over from it. The
    # broker records that with the id of the new topic.
    for made_s, topic_id, count in ((20, None, 0), (20, "t-id", 0), (200, None, 1), (200, "t-id", 1)):
        again = at_end({"t": 1})._replace(earlier={"t": ((10_000, 1), (1_000 * made_s, 0))})
        back = [commits(rewinds=(Rewind(at(25), 90, 40),), topic_id=topic_id)]
        assert len(found(FindingKind.OFFSETS_REWOUND, commits=back, topics=again, **parts)) == count
    # Without the metadata log it may have been.
    for topic_id, topics, is_open in ((None, NO_TOPICS, True), ("t-id", NO_TOPICS, False), (None, at_end({}), False)):
        back = [commits(rewinds=(Rewind(at(25), 90, 40),), topic_id=topic_id)]
        (row,) = found(FindingKind.OFFSETS_REWOUND, commits=back, topics=topics, **parts)
        assert ("or the topic was made again meanwhile" in row.detail) is is_open


def test_a_rewind_names_the_member_that_committed_and_had_lost_the_partition() -> None:
    """franz-go writes its member id as metadata of its commits."""
    held = [assignment("a", 0, at(2), at(19)), assignment("b", 0, at(20)), assignment("b", 1, at(20))]
    parts = {"assignments": held, "rebalances": [rebalance(3, at(18), finished=at(20))], "memberships": MEMBERS}
    parts["epochs"] = [epoch(3, at(18), members=("a", "b"))]

    def detail(*of: PartitionCommits) -> str:
        (row,) = found(FindingKind.OFFSETS_REWOUND, commits=list(of), topics=at_end({}), **parts)
        return row.detail

    lost = commits(rewinds=(Rewind(at(25), 90, 40, "a"), Rewind(at(26), 90, 41, "a", 25)))
    assert "; 2 committed by client-a at 10.0.0.1 (a), 2 of them for partitions that it had lost" in detail(lost)
    own = commits(rewinds=(Rewind(at(25), 90, 40, "b"),))
    assert detail(own).endswith("from 90 to 40; 1 committed by client-b at 10.0.0.1 (b)")
    for other in (None, "", "of an application"):
        assert detail(commits(rewinds=(Rewind(at(25), 90, 40, other),))).endswith("from 90 to 40")


def test_offsets_set_back_while_nobody_was_in_the_group_are_a_reset() -> None:
    back = [commits(rewinds=(Rewind(at(25), 90, 40),)), commits(partition=1, rewinds=(Rewind(at(25), 7, 0),))]
    empty = epoch(3, at(20), members=())
    (row,) = found(FindingKind.OFFSETS_RESET, commits=back, epochs=[epoch(2, at(2), members=("a",)), empty])
    assert (row.value, row.subject, row.evidence) == (57, "t", (at(25), at(25)))
    assert row.detail.startswith(
        "while the group had no members, 2 committed offsets went back by 57 in total, the first of t-0 from 90 to 40"
    )
    unknown = [empty._replace(history_complete=False), empty._replace(members=None), empty._replace(members=("a",))]
    for there in unknown:
        assert found(FindingKind.OFFSETS_RESET, commits=back, epochs=[there]) == []
    deleted = epoch(2, at(2), members=("a",), ended=at(24), ended_by="group deleted")
    assert len(found(FindingKind.OFFSETS_RESET, commits=back, epochs=[deleted])) == 1
    assert len(found(FindingKind.OFFSETS_RESET, commits=back)) == 1


@pytest.mark.parametrize(
    ("changes", "topic_id", "count"),
    [
        (((19_000, 1), (20_000, 0)), None, 0),
        (((19_000, 1), (20_000, 0)), "t-id", 1),
        (((0, 1), (100, 0)), None, 1),
        (((20_000, 0),), None, 1),
    ],
    ids=["made again", "the topic id tells", "made again before", "created, by a clock that is ahead"],
)
def test_who_reads_a_topic_that_was_made_again_resets_nothing(
    changes: tuple[tuple[int, int], ...], topic_id: str | None, count: int
) -> None:
    """A consumer without a group begins anew; its broker records no topic id before Kafka 4.1."""
    back = [commits(rewinds=(Rewind(at(25), 90, 0),), topic_id=topic_id)]
    again = at_end({"t": 1})._replace(earlier={"t": changes})
    rows = found(FindingKind.OFFSETS_RESET, commits=back, topics=again)
    assert len(rows) == count
    assert not any("or the topic was made again" in row.detail for row in rows)
    (row,) = found(FindingKind.OFFSETS_RESET, commits=back)
    assert ("or the topic was made again" in row.detail) is (topic_id is None)


LOST_HERE = LostRecords({("__consumer_offsets", 0): [(21, 22)]})
LOST_BEFORE = LostRecords({("__consumer_offsets", 0): [(0, 0)]})


def test_lost_records_may_have_told_of_members_that_set_offsets_back() -> None:
    back = [commits(rewinds=(Rewind(at(25), 90, 40),))]
    empty = epoch(3, at(20), members=())
    for lost, epochs in ((LOST_HERE, [empty]), (LOST_HERE, []), (LOST_BEFORE, [])):
        assert found(FindingKind.OFFSETS_RESET, commits=back, epochs=epochs, lost=lost) == []
    assert len(found(FindingKind.OFFSETS_RESET, commits=back, epochs=[empty], lost=LOST_BEFORE)) == 1


def test_a_finding_that_lost_records_may_refute_is_not_complete() -> None:
    zombie: dict[str, Any] = {"commits": [commits()], "now_ms": 10_000_000_000}
    (row,) = found(FindingKind.ZOMBIE_GROUP, **zombie)
    assert row.history_complete
    assert row.detail.startswith("no member and no commit for")
    # A commit may be among what is lost.
    later = LostRecords({("__consumer_offsets", 0): [(101, 101)]})
    assert found(FindingKind.ZOMBIE_GROUP, **zombie, lost=later) == []
    (row,) = found(FindingKind.ZOMBIE_GROUP, **zombie, lost=LOST_BEFORE)
    assert not row.history_complete
    assert row.detail.startswith("no commit for")


def test_a_record_or_a_batch_near_the_limit_of_brokers() -> None:
    fold = RecordSizeFold(Family.GROUP)
    fold.feed(RecordType.GROUP_METADATA, 10, 900_000, at(3), 3)
    fold.feed(RecordType.GROUP_METADATA, 10, 800_000, at(4), 4)
    (row,) = found(FindingKind.RECORD_NEAR_LIMIT, sizes=list(fold.sizes()))
    assert (row.value, row.subject, row.evidence) == (900_082, "GROUP_METADATA", (at(3),))
    assert row.detail.startswith(
        "one GROUP_METADATA takes 900082 bytes as a batch, with keys and framing, 85% of what a broker takes by default"
    )


def test_the_target_of_many_members_is_one_batch() -> None:
    fold = RecordSizeFold(Family.GROUP)
    for offset in range(10, 20):
        fold.feed(RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER, 0, 90_000, at(offset), 10)
    fold.feed(RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER, 0, 90_000, at(20), 20)
    (row,) = found(FindingKind.RECORD_NEAR_LIMIT, sizes=list(fold.sizes()))
    fold.feed(RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER, 0, 800_000, at(21), 20)
    (alone,) = found(FindingKind.RECORD_NEAR_LIMIT, sizes=list(fold.sizes()))
    assert (alone.subject, alone.evidence) == ("CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER", (at(21),))
    assert (row.value, row.subject) == (900_171, None)
    assert row.detail.startswith("one batch of 10 records of the group takes 900171 bytes")
    small = RecordSizeFold(Family.GROUP)
    for offset in range(10, 20):
        small.feed(RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER, 0, 90_000, at(offset), -1)
    assert found(FindingKind.RECORD_NEAR_LIMIT, sizes=list(small.sizes())) == []


@pytest.mark.parametrize("value_bytes", [0, 63, 64, 8_000, 8_192, 1_048_600])
def test_a_batch_is_measured_as_it_is_written(value_bytes: int) -> None:
    fold = RecordSizeFold(Family.GROUP)
    written = []
    for offset in range(100, 170):
        value = None if offset % 2 else b"v" * value_bytes
        written.append(NewRecord(offset, 5, b"k" * offset, value))
        fold.feed(RecordType.GROUP_METADATA, offset, len(value or b""), at(offset), 100)
    (batch,) = (row.size for row in fold.sizes() if row.record_type is None)
    assert batch == len(encode_batch(written))


def test_offsets_that_expired_and_those_that_went_with_their_topic() -> None:
    gone = [commits(removals=(Removal(at(50), 5, how),)) for how in ("expired", "topic deleted", "group deleted")]
    (row,) = found(FindingKind.OFFSETS_EXPIRED, commits=gone)
    assert row.value == 1
    assert "of 1 partition of" in row.detail


def test_an_offset_that_expires_twice_is_one_partition() -> None:
    twice = commits(removals=(Removal(at(50), 5, "expired"), Removal(at(90), 9, "expired")))
    (row,) = found(FindingKind.OFFSETS_EXPIRED, commits=[twice, commits(partition=1)])
    assert (row.value, row.evidence) == (1, (at(50), at(90)))
    assert row.detail == "committed offsets of 1 partition of t were removed, 2 times in all: expired"


def test_nobody_misses_an_offset_of_a_topic_that_the_group_no_longer_reads() -> None:
    """While a group has members, brokers remove after the retention only what none of them subscribes to (KIP-211)."""
    gone = commits(last=at(20), offset=None, removals=(Removal(at(50), 5, "expired or deleted"),))

    def values(commit: PartitionCommits = gone, **parts: Any) -> list[int]:
        return [row.value for row in found(FindingKind.OFFSETS_EXPIRED, commits=[commit], **parts)]

    other = member("m1", at(30), subscribed_topics=("new",))
    assert values(memberships=[other]) == []
    assert values(memberships=[other], assignments=[assignment("m1", 0, at(30), at(40))]) == []
    assert values(memberships=[other], assignments=[assignment("m1", 0, at(40))]) == [1]
    assert values(memberships=[other, member("m2", at(40), at(60))]) == [1], "before Kafka 2.1"
    assert values(memberships=[other._replace(left=at(40))]) == [1], "the group was empty"
    streams = other._replace(group_type="STREAMS")
    assert values(memberships=[streams]) == [], "its topology does not read it any more"
    assert values(gone._replace(topic="g-x-repartition"), memberships=[streams]) == [1], (
        "brokers do not count it as read"
    )
    assert values(gone._replace(last=at(90)), memberships=[other]) == [1], "it was read again, from nowhere"


def test_a_group_that_commits_all_the_time_floods_the_log() -> None:
    often = commits(commits=6_000, last=at(2, 60_000), first=at(1, 0))
    (row,) = found(FindingKind.FLOODS_THE_LOG, commits=[often])
    assert row.value == 6_000
    assert row.detail.split(": ")[1].startswith(f"at least {6_000 * (COMMIT_BYTES + len('g') + len('t'))} bytes")
    assert found(FindingKind.FLOODS_THE_LOG, commits=[often._replace(last=at(2, 100 * HOUR))]) == []


def test_commits_without_times_have_no_rate() -> None:
    often = commits(commits=6_000, last=at(2, -1), first=at(1, -1))
    assert found(FindingKind.FLOODS_THE_LOG, commits=[often]) == []
    timed = commits(partition=1, commits=6_000, last=at(4, 60_000), first=at(3, 0))
    (row,) = found(FindingKind.FLOODS_THE_LOG, commits=[often, timed])
    assert (row.value, row.evidence) == (6_000, (at(3, 0), at(4, 60_000)))


@pytest.mark.parametrize(
    ("spans", "lost", "said"),
    [
        ([(0, 11_999)], [], "50% of the 12000 records read of __consumer_offsets-0; none of its offsets is missing"),
        ([(0, 0), (4_000, 15_998)], [], "; 3999 of its 15999 offsets have no record (compaction"),
        ([(4_000, 15_999)], [], "none of the 12000 from offset 4000 on"),
        ([(4_000, 15_999)], [(0, 3_999)], "50% of the 12000 records read of __consumer_offsets-0"),
    ],
)
def test_a_flood_says_its_share_of_the_log_and_how_far_compaction_has_been(
    spans: list[tuple[int, int]], lost: list[tuple[int, int]], said: str
) -> None:
    place = ("__consumer_offsets", 0)
    known = LostRecords({place: lost} if lost else {}, read={place: LogExtent.of(spans)})
    often = commits(commits=6_000, last=at(2, 60_000), first=at(1, 0))
    (row,) = found(FindingKind.FLOODS_THE_LOG, commits=[often], lost=known)
    assert said in row.detail
    assert row.detail.endswith(said) or not lost


def test_a_record_of_a_commit_has_no_less_bytes_than_is_said() -> None:
    """Value version 3, as brokers write it, has a leader epoch besides: 4 bytes."""
    written = [GroupLog("g").commit("t", 0, 5)]
    new = [NewRecord(0, 0, encode_key(each.type, each.key), encode_value(each.type, 3, each.value)) for each in written]
    assert len(encode_batch(new)) - HEADER_SIZE == COMMIT_BYTES + len("gt") + 4


def test_partitions_that_commit_once_are_no_flood() -> None:
    """As when many partitions are assigned at once: a moment says nothing of a minute."""
    at_once = [commits(partition=number, commits=2, first=at(1), last=at(2)) for number in range(1_000)]
    assert found(FindingKind.FLOODS_THE_LOG, commits=at_once) == []


def test_a_transaction_left_open() -> None:
    (row,) = found(FindingKind.TRANSACTION_LEFT_OPEN, now_ms=70_000, transactions=[OpenTransaction(9, at(1), 2)])
    assert (row.value, row.detail.partition(" has")[0]) == (69_000, "the transaction of producer 9")


def test_a_transaction_may_have_ended_in_records_that_are_lost() -> None:
    """As where the end of the log is missing."""
    opened = [OpenTransaction(9, at(1), 2)]
    for lost, is_known in (((0, 0), True), ((5, 5), False), ((40, 2**63 - 1), False)):
        records = LostRecords({("__consumer_offsets", 0): [lost]})
        rows = found(FindingKind.TRANSACTION_LEFT_OPEN, now_ms=70_000, transactions=opened, lost=records)
        assert bool(rows) == is_known


def test_transactions_left_open_are_one_finding_by_the_oldest() -> None:
    opened = [OpenTransaction(producer, at(producer), 2) for producer in (3, 1, 2, 69)]
    (row,) = found(FindingKind.TRANSACTION_LEFT_OPEN, now_ms=70_000, transactions=opened)
    assert (row.value, row.since_ms, len(row.evidence)) == (69_000, 1_000, 3), "the last one is younger than a minute"
    assert row.detail.startswith("3 transactions were left open, the oldest, of producer 1, for at least 1 min 9 s")
    assert row.detail.endswith("the producers of the next: 2, 3")


def test_zombies_are_groups_and_topics_that_nobody_works_on() -> None:
    old = [commits(topic="t"), commits(topic="gone")]
    (group,) = found(FindingKind.ZOMBIE_GROUP, now_ms=2 * DAY, commits=old)
    assert group.value == 2 * DAY - 100_000
    parts = {"memberships": MEMBERS, "assignments": [assignment("a", 0, at(2))], "topics": at_end({"t": 1})}
    (topic,) = found(FindingKind.ZOMBIE_TOPIC, now_ms=2 * DAY, commits=old, **parts)
    assert (topic.subject, topic.detail.endswith("the topic was deleted")) == ("gone", True)
    unsure = parts | {"topics": TopicsAtEnd({"t": 1}, TopicReach(0, DAY))}
    (topic,) = found(FindingKind.ZOMBIE_TOPIC, now_ms=2 * DAY, commits=old, **unsure)
    assert "deleted" not in topic.detail, "the metadata log ends before"
    assert found(FindingKind.ZOMBIE_GROUP, now_ms=2 * DAY, commits=old, **parts) == []


def test_broken_rules_are_a_finding_and_notices_are_none() -> None:
    wrong = Violation(Rule.ASSIGNED_TO_TWO, at(3), "g", "m", "t-0 is also with n")
    notice = Violation(Rule.UNKNOWN_RECORD_TYPE, at(4), "g", None, "record type 99")
    (row,) = found(FindingKind.RULES_BROKEN, violations=[wrong, notice])
    assert (row.value, row.evidence) == (1, (at(3),))


def test_findings_come_by_urgency() -> None:
    assert score(FindingKind.ZOMBIE_GROUP, 100, 10) == 20.0
    assert score(FindingKind.ZOMBIE_GROUP, 1_000, 10) == 20.0
    rows = findings(
        GroupHistory(
            "g",
            100_000,
            violations=[Violation(Rule.ASSIGNED_TO_TWO, at(3), "g", "m", "")],
            transactions=[OpenTransaction(9, at(1), 2)],
        ),
        LIMITS,
    )
    # Any alarm comes before a warning, also one with a higher score.
    assert [(row.kind, row.level) for row in rows] == [("rules_broken", "alarm"), ("transaction_left_open", "warning")]
    assert [row.is_open for row in rows] == [False, True]
    assert [row.score for row in rows] == [10.0, 13.2]


def test_the_table_has_every_kind_once_and_its_threshold_in_the_settings() -> None:
    assert all(kind.value == kind.name.lower() for kind in FindingKind)
    named = {kind.threshold for kind in FindingKind} - {"any"}
    assert all(hasattr(LIMITS, name) for name in named)


def test_commits_are_folded_with_their_transactions() -> None:
    log, fold = GroupLog(), CommitFold()
    fold.feed(log.commit("t", 0, 10))
    fold.feed(log.commit("t", 0, 4))
    fold.feed(log.commit("t", 0, 20), producer_id=1)
    fold.feed(log.commit("t", 1, 30), producer_id=2)
    fold.feed(log.commit("t", 2, 40), producer_id=3)
    fold.end_transaction(1, committed=True)
    fold.end_transaction(2, committed=False)
    (only,) = fold.partitions()
    assert (only.commits, only.offset, only.rewinds) == (3, 20, (Rewind(at(1), 10, 4, "", 0),))
    assert list(fold.transactions()) == [OpenTransaction(3, at(4), 1)]


@pytest.mark.parametrize("apart_ms", [0, CLOCK_TOLERANCE_MS, -CLOCK_TOLERANCE_MS])
def test_removals_say_what_took_the_offset(apart_ms: int) -> None:
    """The clock of the controller, which deletes topics, may be ahead of the coordinator's, or behind it."""
    log, fold = GroupLog(), CommitFold()
    fold.feed(log.commit("t", 0, 1, expireTimestamp=500))
    fold.feed(log.commit("t", 1, 1))
    fold.feed(log.commit("t", 2, 1))
    fold.feed(log.commit("gone", 0, 1))
    fold.feed(log.commit("t", 3, 1, commitTimestamp=-60_000))
    removals = [log.no_commit("t", 0), log.no_commit("t", 1), log.no_commit("gone", 0), log.no_commit("t", 2)]
    fold.feed(log.no_commit("t", 3))
    for removal in removals:
        fold.feed(removal)
    for _ in ("metadata", "epoch"):  # a group may have several tombstones at that time
        fold.group_deleted(removals[-1].at)
    fold.feed(log.commit("t", 4, 1, commitTimestamp=-60_000))
    with_group = log.no_commit("t", 4)
    fold.feed(with_group)
    fold.group_deleted(with_group.at)
    fold.topic_deleted("gone", removals[2].at.timestamp_ms + apart_ms)
    fold.topic_deleted("t", removals[3].at.timestamp_ms + 2 * CLOCK_TOLERANCE_MS)
    how = {(each.topic, each.partition): each.removals[0].how for each in fold.partitions()}
    assert how == {
        ("t", 0): "expired",
        ("t", 1): "deleted",
        ("t", 3): "expired or deleted",
        ("t", 2): "group deleted",
        ("t", 4): "group deleted or expired",
        ("gone", 0): "topic deleted",
    }


def test_what_was_removed_with_the_group_is_not_told_without_times() -> None:
    fold, log = CommitFold(), GroupLog()
    timeless = [
        record._replace(at=record.at._replace(timestamp_ms=-1))
        for record in (log.commit("t", 0, 1), log.no_commit("t", 0))
    ]
    for record in timeless:
        fold.feed(record)
    fold.group_deleted(at(9, -1))
    (removed,) = next(fold.partitions()).removals
    assert removed.how == "expired or deleted"


def connect_epoch(number: int, unassigned: int | None, **more: Any) -> Any:
    ended = {} if more.get("is_open") else {"ended": at(number + 1), "ended_by": "next epoch"}
    values = {"group_type": "CONNECT", "members": ("w1",), "unassigned": unassigned, **ended}
    return epoch(number, at(number), **(values | more))


def test_work_in_no_workers_target_is_found_in_any_state() -> None:
    """Since the first of the targets that lacks work; an epoch without a target yet changes nothing."""
    opened = connect_epoch(5, None, target=None, state="ASSIGNING", is_open=True)
    lacking = [connect_epoch(2, 0), connect_epoch(3, 2), connect_epoch(4, 3), opened]
    (row,) = found(FindingKind.UNASSIGNED_WORK, epochs=lacking, now_ms=13_000)
    assert (row.value, row.group_type, row.since_ms, row.until_ms) == (3, "CONNECT", 3_000, 13_000)
    assert row.detail == "in no worker's target for 10 s: 3 connectors and tasks"
    assert row.evidence == (at(3), at(4))
    whole = [connect_epoch(3, 2), connect_epoch(4, 0, is_open=True)]
    assert found(FindingKind.UNASSIGNED_WORK, epochs=whole) == []
    emptied = [connect_epoch(3, 2), connect_epoch(4, None, target=None, members=(), state="EMPTY", is_open=True)]
    assert found(FindingKind.UNASSIGNED_WORK, epochs=emptied) == []


def test_a_group_whose_last_worker_left_was_stopped() -> None:
    """At the record with which it left, and as long as nobody comes back."""
    deserted = connect_epoch(4, 3, target=None, members=(), state="EMPTY", is_open=True)
    for now_ms in (4_000, 14_000, DAY):
        assert found(FindingKind.UNASSIGNED_WORK, epochs=[connect_epoch(3, 2), deserted], now_ms=now_ms) == []
    opened = connect_epoch(5, None, target=None, state="ASSIGNING", is_open=True)
    emptied = [connect_epoch(3, 2), deserted._replace(is_open=False), opened]
    assert found(FindingKind.UNASSIGNED_WORK, epochs=emptied) == []


def test_work_that_waits_for_a_worker_to_return_is_an_alarm_once_the_delay_is_over() -> None:
    epochs = [connect_epoch(2, 0), connect_epoch(3, 2, is_open=True)]
    waits = [rebalance(3, at(3), group_type="CONNECT", delay_ms=300_000)]
    (row,) = found(FindingKind.UNASSIGNED_WORK, epochs=epochs, rebalances=waits, now_ms=3_000)
    assert (row.value, row.level) == (2, "notice")
    assert row.detail == (
        "in no worker's target for 0 ms: 2 connectors and tasks; a worker that left has 5 min to return"
    )
    over_ms = 3_000 + 300_000 + LIMITS.slow_rebalance_ms
    levels = [
        found(FindingKind.UNASSIGNED_WORK, epochs=epochs, rebalances=waits, now_ms=now_ms)[0].level
        for now_ms in (over_ms - 1, over_ms)
    ]
    assert levels == ["notice", "alarm"]
    # It was in no target before the worker left.
    before = [connect_epoch(2, 1), connect_epoch(3, 2, is_open=True)]
    (row,) = found(FindingKind.UNASSIGNED_WORK, epochs=before, rebalances=waits, now_ms=3_000)
    assert row.level == "alarm"


def test_a_group_in_which_no_worker_can_compute_is_found() -> None:
    epochs = [connect_epoch(2, 0, assignment_error=0), connect_epoch(3, None, target=None, assignment_error=-1)]
    (row,) = found(FindingKind.ASSIGNOR_FAILED, epochs=epochs)
    assert row.detail == "epochs 3 (no worker supports the versions of all others: FATAL)"


def test_targets_with_an_error_of_the_assignor_are_found() -> None:
    epochs = [connect_epoch(2, 0, assignment_error=0), connect_epoch(3, 1, assignment_error=4)]
    (row,) = found(FindingKind.ASSIGNOR_FAILED, epochs=epochs)
    assert (row.value, row.detail, row.evidence) == (1, "epochs 3 (error 4)", (at(3),))
    assert found(FindingKind.ASSIGNOR_FAILED, epochs=epochs[:1]) == []


def test_offsets_of_a_group_that_nobody_uses_any_more_expire_as_they_should() -> None:
    def told(*rows: PartitionCommits, **parts: Any) -> tuple[str, bool]:
        (row,) = found(FindingKind.OFFSETS_EXPIRED, commits=list(rows), **parts)
        return row.level, row.detail.endswith("; nobody has read the topic since")

    gone = commits(last=at(20), offset=None, removals=(Removal(at(50), 5, "expired"),))
    assert told(gone) == told(gone, memberships=[member("m", at(60), subscribed_topics=("u",))]) == ("notice", True)
    for back in (at(40), at(60)):
        assert told(gone, memberships=[member("m", back, at(70), subscribed_topics=("t",))]) == ("alarm", False)
    assert told(gone, commits(partition=1, last=at(60))) == ("alarm", False)


def test_offsets_that_surely_expired_are_told_from_those_that_may_have() -> None:
    ways = ("expired", "expired or deleted", "expired or deleted")
    removed = [commits(partition=number, removals=(Removal(at(50), 5, how),)) for number, how in enumerate(ways)]
    (row,) = found(FindingKind.OFFSETS_EXPIRED, commits=removed)
    assert row.detail == "committed offsets of 3 partitions of t were removed: 1 expired; 2 expired or deleted"


def test_offsets_that_may_have_gone_with_their_topic_are_not_certainly_expired() -> None:
    """Where the metadata log does not show the time, the topic may have been deleted."""

    def removed(reach: TopicReach, how: str) -> tuple[str, list[tuple[bool, str]]]:
        row = commits(topic="t", last=at(150))._replace(removals=(Removal(at(100), 5, how),))
        history = GroupHistory.gather("g", 200_000, [row], TopicsAtEnd({"t": 1}, reach), NO_SHARE_LOGS)
        rows = [row for row in findings(history, LIMITS) if row.kind == FindingKind.OFFSETS_EXPIRED]
        return history.commits[0].removals[0].how, [(row.history_complete, row.level) for row in rows]

    whole, later, ended = TopicReach(0, 200_000), TopicReach(95_000, 200_000), TopicReach(0, 80_000)
    assert removed(whole, "expired or deleted") == ("expired or deleted", [(True, "alarm")])
    unsure = ("expired or deleted, or removed with its topic", [(False, "notice")])
    assert removed(later, "expired or deleted") == unsure
    assert removed(ended, "expired or deleted") == unsure
    assert removed(ended, "deleted") == ("deleted, or removed with its topic", [])
    assert removed(ended, "group deleted") == ("group deleted", [])


@pytest.mark.parametrize(("client_id", "merges"), [("rdkafka", False), ("orders", True), ("consumer-g-1", False)])
def test_processes_that_share_the_default_id_of_their_client_are_not_one_that_flaps(
    client_id: str, merges: bool
) -> None:
    """Two of them are there at once: each process of a host has the id."""
    rows = [member(f"m{n}", at(2 * n), at(2 * n + 3), client_id=client_id) for n in range(LIMITS.flapping_stays)]
    rows.append(member("other", at(1), None, client_id="other"))
    assert bool(found(FindingKind.FLAPPING_MEMBER, memberships=rows)) == merges


def test_short_stays_far_from_each_other_are_no_flapping() -> None:
    """One a day is the work of a person, or of the client's own schedule; each time of trouble is told by itself."""
    other = member("other", at(1), None, client_id="other")

    def told(*hours: float) -> list[int]:
        begins = [LogPosition(0, 10 + 2 * nth, int(hour * 3_600_000)) for nth, hour in enumerate(hours)]
        ends = [begin._replace(offset=begin.offset + 1, timestamp_ms=begin.timestamp_ms + 60_000) for begin in begins]
        stays = [member(f"m{nth}", *stay, client_id="one") for nth, stay in enumerate(zip(begins, ends, strict=True))]
        history = GroupHistory("g", 1 << 40, memberships=[other, *stays])
        return [row.value for row in findings(history, LIMITS) if row.kind == FindingKind.FLAPPING_MEMBER]

    assert told(*range(24, 24 * 40, 24)) == []
    assert told(1, 1.25, 1.5, 1.75, 2) == [5]
    assert told(1, 1.25, 1.5, 1.75, 2.1) == []
    assert told(1, 1.2, 1.4, 1.6, 1.8, 2, 8, 9, 9.1, 9.2, 9.3, 9.4) == [6, 5]


def crash_loop(client_id: str, first: int) -> tuple[list[MembershipRow], list[RebalanceRow]]:
    """The stays of a client, and the rebalances that they make."""
    stays = [
        member(f"{client_id}{n}", at(first + 20 * n), at(first + 20 * n + 10), client_id=client_id) for n in range(6)
    ]
    moves = [
        rebalance(each.offset, each, causes=(cause(kind, row.member_id, each),))
        for row in stays
        for kind, each in (("member_joined", row.joined), ("member_left", row.left))
        if each is not None
    ]
    return stays, moves


def test_a_storm_that_one_flapping_client_makes_is_told_once() -> None:
    """Of two such clients none makes most of it: then the storm is told, and they are part of it."""
    other = member("other", at(1), None, client_id="other")
    kinds = {FindingKind.REBALANCE_STORM, FindingKind.FLAPPING_MEMBER}
    (one, moves), (two, more) = crash_loop("one", 2), crash_loop("two", 7)

    def told(stays: list[MembershipRow], rows: list[RebalanceRow]) -> list[tuple[str, str | None]]:
        history = GroupHistory("g", 200_000, memberships=[other, *stays], rebalances=rows)
        return [(row.kind, row.subject) for row in findings(history, LIMITS) if row.kind in kinds]

    assert told(one, moves) == [(FindingKind.FLAPPING_MEMBER, "one at 10.0.0.1")]
    three, most = crash_loop("three", 12)
    assert told([*one, *two, *three], [*moves, *more, *most]) == [(FindingKind.REBALANCE_STORM, None)]


def taken_by_turns(count: int, **more: Any) -> PartitionCommits:
    """Two writers: one is at 1,000 times the turn, the other 500 below."""
    rewinds = tuple(Rewind(at(10 + n), 1_000 * n, 1_000 * n - 500) for n in range(1, count + 1))
    values = {"partition": 0, "commits": 2 * count, "first": at(1), "last": at(9_000), "offset": 5}
    return PartitionCommits("t", **(values | {"rewinds": rewinds, "removals": ()} | more))


def test_two_jobs_that_commit_by_turns_are_one_finding() -> None:
    """No administrator is blamed for it."""
    (row,) = found(FindingKind.COMMITS_BY_TURNS, commits=[taken_by_turns(8), taken_by_turns(6, partition=1)])
    assert (row.value, row.subject, row.until_ms) == (14, "t", at(18).timestamp_ms)
    assert "2 partitions (t-0, t-1) went back 14 times and forth again, by 500 offsets mostly" in row.detail
    assert found(FindingKind.OFFSETS_RESET, commits=[taken_by_turns(8)]) == []
    assert found(FindingKind.COMMITS_BY_TURNS, commits=[taken_by_turns(4)]) == []


def test_members_that_commit_out_of_order_are_no_two_jobs() -> None:
    """While a group has members, the coordinator takes commits only from them."""
    turns = [taken_by_turns(8)]
    for members, count in ((("m1",), 0), ((), 1), (None, 1)):
        parts = {"commits": turns, "epochs": [epoch(2, at(1), members=members)]}
        assert len(found(FindingKind.COMMITS_BY_TURNS, **parts)) == count
    ended = epoch(2, at(1), members=("m1",), ended=at(2), ended_by="group deleted")
    assert len(found(FindingKind.COMMITS_BY_TURNS, commits=turns, epochs=[ended])) == 1


def test_an_administrator_who_resets_often_takes_no_turns() -> None:
    rewinds = tuple(Rewind(at(10 + n), 1_000 * n, 0) for n in range(1, 9))
    commits = [taken_by_turns(8)._replace(rewinds=rewinds)]
    assert found(FindingKind.COMMITS_BY_TURNS, commits=commits) == []
    assert len(found(FindingKind.OFFSETS_RESET, commits=commits)) == 8


def test_what_is_not_kept_is_said() -> None:
    whole, cut = taken_by_turns(MOST_KEPT, partition=1), taken_by_turns(MOST_KEPT, more_rewinds=250, more_removals=7)
    (row,) = found(FindingKind.COMMITS_BY_TURNS, commits=[cut, whole])
    assert "the first 1000 of a partition are kept: 1 partition had 250 more" in row.detail
    assert (row.value, row.until_ms) == (2 * MOST_KEPT + 250, at(9_000).timestamp_ms)
    (row,) = found(FindingKind.COMMITS_BY_TURNS, commits=[whole])
    assert "are kept" not in row.detail


def test_kinds_that_are_off_are_not_looked_for() -> None:
    chosen = load(environment={}, flags={"findings.off": ["static_member_expired", "rebalance_storm"]}).findings
    assert chosen.off == (FindingKind.STATIC_MEMBER_EXPIRED, FindingKind.REBALANCE_STORM)
    rows = [member("a", at(1), at(70), instance_id="i", went_by="static replacement"),
            member("b", at(70), at(90), instance_id="i", replaces="a", away_since=at(75))]  # fmt: skip
    storm = [rebalance(e, at(e)) for e in range(2, 14)]
    for limits, kinds in ((LIMITS, 3), (chosen, 1)):
        told = {row.kind for row in findings(GroupHistory("g", 10_000_000, memberships=rows, rebalances=storm), limits)}
        looked_for = {FindingKind.STATIC_MEMBER_FENCED, *(() if limits is chosen else chosen.off)}
        assert told >= looked_for
        assert not told & {*limits.off}
        assert len(looked_for) == kinds
    many = [row for name in "abc" for row in findings(GroupHistory(name, 10_000_000, rebalances=storm), LIMITS)]
    assert {row.kind for row in about_cluster(NO_SIGNS, NO_TOPICS, many, LIMITS, all_shown)[0]} == {
        FindingKind.REBALANCE_STORM
    }
    assert about_cluster(NO_SIGNS, NO_TOPICS, many, chosen, all_shown) == ([], [])

"""What is said of logs of real brokers whose clients are known: no false cause, no false alarm."""

from dataclasses import replace
from pathlib import Path

import pytest

from coordinator_core.assignors.client.leader_view import ASSIGNS_ALL
from coordinator_core.audit.explain import explain, explain_rebalance, find_rebalance
from coordinator_core.audit.finding_rows import FindingKind, FindingRow, Level, listed
from coordinator_core.audit.findings.all_findings import findings, findings_of_cluster
from coordinator_core.audit.offsets.steps import commit_steps
from coordinator_core.cluster.metadata_log import fold_metadata_log
from coordinator_core.cluster.topic_lists import fold_snapshots
from coordinator_core.durations import duration
from coordinator_core.groups.rules import Rule
from coordinator_core.history.memberships import EXPIRED, NOT_SAID, REMOVED
from coordinator_core.history.rows import LEFT_OR_EXPIRED, REPLACED
from coordinator_core.records import Family
from jobs.queries.from_logs.commits import group_commits
from jobs.queries.from_logs.history import group_histories
from jobs.settings import load
from jobs.sources.files import find_logs
from jobs.sources.log_reader import LogReader
from tests.core.audit.histories import all_shown
from tests.core.real_logs import clients, histories, life, unpacked, wild
from tests.core.recorded import SAMPLES
from tests.jobs.logs import batches
from tests.shared_data import ROOT

LIMITS = load(environment={}).findings
SHOP = ROOT / "data" / "samples" / "shop"
UNASSIGNED = FindingKind.UNASSIGNED_PARTITIONS


def found_in_wild() -> list[FindingRow]:
    return list(findings_of_cluster(histories(wild()).values(), LIMITS, all_shown))


def test_members_that_come_back_under_their_ids_were_not_restarted() -> None:
    """Nobody restarted a client: 10 and 13 members lost their sessions in the same second, and went on."""
    found = found_in_wild()
    assert [row for row in found if row.kind == FindingKind.ROLLING_DEPLOY] == []
    stood_still = [row for row in found if row.kind == FindingKind.STOOD_STILL]
    assert [(row.group_id, row.value, row.subject) for row in stood_still] == [
        (None, 10, "127.0.0.1"),
        (None, 13, "127.0.0.1"),
    ]
    assert "13 members of 4 groups (W-con-0, W-con-2, W-con-1, W-share-1) lost their sessions" in stood_still[1].detail


def test_a_planned_restart_that_harmed_nobody_is_a_notice() -> None:
    """The one broker was restarted: its log partitions had no leader for 23 seconds, and no member lost its session. It
    was shut down again at the end of the log: of that no finding tells.
    """
    logs = find_logs([SAMPLES])
    found = listed(findings_of_cluster(group_histories(logs, lambda _: None), LIMITS, all_shown))
    (away,) = [row for row in found if row.kind == FindingKind.COORDINATOR_AWAY]
    assert (away.level, away.group_id, away.value, away.subject) == (Level.NOTICE, None, 22_953, "broker 1")
    assert [row.level for row in found[: found.index(away)]] == [Level.WARNING]
    assert "was in a controlled shutdown (fenced at 2026-11-21T10:" in away.detail
    assert not away.is_open


def test_deploys_and_crashes_are_quiet_and_a_restart_that_ended_sessions_is_told_once() -> None:
    """Twice each within seven minutes: a rolling deploy of four groups, a member of three that was killed, a restart of
    the one broker, after which the six members of classic groups whose session timeout is 10 seconds had to join again.
    """
    found = findings_in("restart")
    alarms = [row for row in found if row.level != Level.NOTICE]
    assert [(row.kind, row.value, row.level) for row in alarms] == [
        (FindingKind.COORDINATOR_AWAY, 14_761, Level.ALARM),
        (FindingKind.COORDINATOR_AWAY, 16_711, Level.ALARM),
    ]
    assert all(row.detail.endswith("; 6 members may have lost their sessions by it") for row in alarms)


def test_storms_of_many_groups_are_one_finding() -> None:
    """The groups' own are kept, and listed where a group is asked for."""
    found = found_in_wild()
    (storm,) = [row for row in listed(found) if row.kind == FindingKind.REBALANCE_STORM]
    assert storm.group_id is None
    assert "no cause in the cluster itself is known" in storm.detail, "few of the rebalances follow lost sessions"
    assert [row.kind for row in listed(found, "W-con-0")].count(FindingKind.REBALANCE_STORM) == 1


def test_two_owners_are_told_first_and_what_they_mean() -> None:
    """Kafka's sticky assignor gave five partitions to a second member in generation 70."""
    found = found_in_wild()
    gravest = next(row for row in listed(found) if row.group_id is not None)
    assert (gravest.kind, gravest.group_id, gravest.value) == (FindingKind.TWO_OWNERS, "W-cls-1", 1417)
    assert "records that both read in this time are processed twice" in gravest.detail
    assert not [row for row in found if row.kind == FindingKind.RULES_BROKEN]
    history = histories(wild())["W-cls-1"]
    texts = [sentence.text for sentence in explain(history, find_rebalance(history, 70))]
    assert texts[2].startswith("Two owners: it gave 5 partitions to a second member")
    assert "are processed twice" in texts[2]
    assert any(text.startswith("5 partitions got a second owner") for text in texts)


def test_when_a_rebalance_began_is_told_from_its_end() -> None:
    history = histories(wild())["W-cls-1"]
    row = find_rebalance(history, 70)
    assert row.began_after_ms is not None
    most, least = row.at.timestamp_ms - row.began_after_ms, row.at.timestamp_ms - row.began_before_ms
    texts = [sentence.text for sentence in explain(history, row)]
    bounds = f"between {duration(most)} and {duration(least)}"
    assert f"The log does not say when it began: {bounds} before it completed." in texts


def test_an_eager_rebalance_stops_what_its_members_have() -> None:
    """From when all had joined until the assignment was there, nobody read a partition: also one that a member had
    before and after was without an owner.
    """
    stopped = []
    for history in histories(wild()).values():
        eager = {row.epoch for row in history.epochs if row.assignor in ASSIGNS_ALL}
        stopped += [
            row for row in history.rebalances if {row.from_epoch, row.to_epoch} <= eager and row.duration_min_ms
        ]
    stayed = [row for row in stopped if not (row.units_lost or row.units_moved)]
    kept = [row for row in stayed if row.idle_ms]
    assert len(kept) > 5
    assert len(kept) > len(stayed) / 2
    assert [row.idle_max_ms for row in kept] == [row.duration_min_ms for row in kept]


def test_a_hint_is_no_coins_toss() -> None:
    hints = [row.hint for each in histories(wild()).values() for row in each.memberships if row.hint is not None]
    assert hints
    assert [hint for hint in hints if "or idle" in hint] == []


def test_who_commits_while_revoking_had_the_partition() -> None:
    """A cooperative consumer commits as it gives up what the generation took: nobody else has it yet."""
    while_revoking = [each for each in clients() if each.get("event") == "commits" and each.get("while") == "revoked"]
    in_classic = [each for each in while_revoking if each["group"] == "classic2"]
    assert in_classic
    history = histories(life())["classic2"]
    assert [row for row in history.violations if row.rule == Rule.COMMIT_BY_NO_OWNER] == []
    steps = commit_steps(history, group_commits(find_logs([life()]), lambda message: None, "classic2", None))
    for commit in in_classic:
        for name in commit["offsets"]:
            topic, _, partition = name.rpartition("-")
            owners = {
                row.owner
                for row in steps
                if (row.topic, row.partition) == (topic, int(partition))
                and row.since.timestamp_ms <= commit["at_ms"] + 50
                and row.until.timestamp_ms >= commit["began_ms"] - 50
            }
            assert commit["member"] in owners


def test_members_with_different_topics_give_up_what_others_need() -> None:
    """A member left, and only some of the others subscribed to its topics: these gave partitions to the rest."""
    assert [row for row in found_in_wild() if row.kind == FindingKind.MOVED_MORE_THAN_NEEDED] == []


def test_a_number_of_an_epoch_that_comes_again_is_told() -> None:
    """The group was classic in generation 47, and of the new protocol in epoch 47."""
    history = histories(wild())["W-mig-1"]
    rows = sorted((row for row in history.rebalances if row.to_epoch == 47), key=lambda row: row.at.offset)
    assert [row.group_type for row in rows] == ["CLASSIC", "CONSUMER"]
    said, *rest = explain_rebalance(history, 47)
    assert said.text.startswith("The group has 2 rebalances to 47: this is the last one")
    assert said.evidence == (rows[0].at,)
    assert rest == explain(history, rows[1])
    assert explain_rebalance(history, offset=rows[0].at.offset) == explain(history, rows[0])


def test_a_topic_deleted_between_two_snapshots_breaks_no_rule() -> None:
    """Of a topic that the next list lacks nobody knows when it was deleted."""
    files = find_logs([wild()])
    known = fold_metadata_log(LogReader([each for each in files if each.family is Family.METADATA], print).records())
    first, last = known.positions[0].timestamp_ms, known.positions[-1].timestamp_ms
    listed = fold_snapshots(
        {"name": topic.name, "id": topic.id, "partitions": topic.partitions, "time": time_ms}
        for time_ms in range(first, last + 40_000, 40_000)
        if (image := known.image_at(time_ms)) is not None
        for topic in image.by_name.values()
    )
    groups = [each for each in files if each.family is Family.GROUP]
    broken = {
        row.rule
        for history in group_histories(groups, lambda message: None, None, None, listed)
        for row in history.violations
    }
    assert broken == {Rule.ASSIGNED_TO_TWO}, "which is true"


def findings_in(name: str) -> list[FindingRow]:
    """Those of a log under ``tests/data``, with the targets judged."""
    logs = find_logs([unpacked(name)])
    settings = load(environment={})
    return listed(
        findings_of_cluster(group_histories(logs, lambda _: None, audit=settings.audit), settings.findings, all_shown)
    )


def test_a_healthy_cluster_is_quiet() -> None:
    """Planned restarts of dynamic and static members, one group that scales up and down, a job that runs six times for
    six seconds, one spare member; the broker was shut down at the end.
    """
    found = findings_in("calm")
    assert [row for row in found if row.level != Level.NOTICE] == []
    assert [(row.kind, row.group_id) for row in found] == [
        (FindingKind.ROLLING_DEPLOY, "rt-deploy"),
        (FindingKind.ROLLING_DEPLOY, "rt-deploy848"),
        (FindingKind.EMPTY_MEMBERS, "rt-spare"),
    ]


def with_groups_until(end_ms: int, logs: Path, into: Path) -> Path:
    """Copies of logs in which those of groups end at a time, and the metadata log goes on."""
    for segment in sorted(logs.glob("__*/*.log")):
        is_of_groups = segment.parent.name.startswith("__consumer_offsets")
        kept = (
            batch for _, batch in batches(segment.read_bytes()) if not is_of_groups or last_time_ms(batch) <= end_ms
        )
        (into / segment.parent.name).mkdir()
        (into / segment.parent.name / segment.name).write_bytes(b"".join(kept))
    return into


def last_time_ms(batch: bytes) -> int:
    return int.from_bytes(batch[35:43], signed=True)


@pytest.mark.parametrize(
    ("logs", "end_ms", "group_id"), [(life(), 1_795_444_885_000, "modern0"), (SHOP, 1_795_811_099_000, "checkout")]
)
def test_a_group_is_not_blamed_for_partitions_that_came_after_its_log(
    logs: Path, end_ms: int, group_id: str, tmp_path: Path
) -> None:
    """The topic grew 90 s and 1 s after what is there of the groups' logs. Both are known to lack their ends: the
    metadata log goes on long enough for groups to have seen changes of topics, so that members are not known either.
    """
    cut = with_groups_until(end_ms, logs, tmp_path)
    history = histories(cut)[group_id]
    assert UNASSIGNED not in {row.kind for row in findings(history, LIMITS)}
    grown = replace(history, topics=history.topics._replace(earlier={}))
    found = [row.detail for row in findings(grown, LIMITS) if row.kind == UNASSIGNED]
    assert (found, bool(history.lost.ranges)) == ([], True)


def test_a_poll_loop_that_takes_too_long_is_named() -> None:
    """Client ``slow`` has max.poll.interval.ms 7000 and works 12 seconds on each record: it left five times."""
    (row,) = findings_in("max_poll")
    assert (row.kind, row.group_id, row.subject, row.value) == (
        FindingKind.FLAPPING_MEMBER,
        "invoicing",
        "slow at 127.0.0.1",
        5,
    )
    assert "each time 7.5 s to 9.1 s after it got partitions and without a commit" in row.detail
    assert "a little above its rebalance timeout of 7.0 s, which is its max.poll.interval.ms" in row.detail


def test_one_record_has_one_story() -> None:
    """A static consumer whose session expired is not one whose instance id was taken over, though its id was later."""
    found, expired = found_in_wild(), 0
    for history in histories(wild()).values():
        taken = {row.left for row in history.memberships if row.went_by == REPLACED}
        fenced = [row for row in listed(found, history.group_id) if row.kind == FindingKind.STATIC_MEMBER_FENCED]
        assert {at for row in fenced for at in row.evidence} <= taken
        for row in history.memberships:  # those of the other groups speak the classic protocol, too
            if history.group_id.startswith("W-con") and row.instance_id is not None and row.went_by == LEFT_OR_EXPIRED:
                assert (row.hint or "").startswith((EXPIRED, NOT_SAID, REMOVED, "it had been away"))
                expired += 1
    assert expired


def test_a_rebalance_behind_an_absence_says_so() -> None:
    """Its members joined again after the restart of the broker: their own doing need not be a cause."""
    logs = find_logs([SAMPLES])
    texts = [
        (sentence.text, sentence.source)
        for history in group_histories(logs, lambda _: None)
        for row in history.rebalances
        for sentence in explain(history, row)
        if sentence.text.startswith("The coordinator of the group")
    ]
    assert texts
    assert {source for _, source in texts} == {"cluster metadata"}
    assert all("broker 1 was gone (controlled shutdown) from 2026-11-21T10:30:35.601Z" in text for text, _ in texts)

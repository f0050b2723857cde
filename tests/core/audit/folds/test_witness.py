"""What lines of brokers' application logs add to the history of a group, and what they do not."""

from datetime import UTC, datetime
from typing import Any

import pytest

from coordinator_core.audit.explain import explain
from coordinator_core.audit.findings.broker_lines import conversions_refused, decisions_not_kept, not_completed
from coordinator_core.audit.findings.coordinator_away import lost_members
from coordinator_core.audit.findings.membership import static_members
from coordinator_core.audit.findings.rebalances import never_converges, slow
from coordinator_core.audit.folds.absences import absences
from coordinator_core.audit.folds.commits import PartitionCommits, Removal
from coordinator_core.audit.folds.group_history import NO_SHARE_LOGS, GroupHistory
from coordinator_core.audit.folds.removals import EXPIRED_OR_DELETED
from coordinator_core.broker_log.events import BrokerEvent
from coordinator_core.broker_log.lines import events
from coordinator_core.history.lost_records import NOTHING_LOST, LostRecords
from coordinator_core.history.memberships import COORDINATOR_AWAY
from jobs.settings import load
from tests.core.audit.histories import assignment, at, cause, epoch, member, rebalance
from tests.core.known_topics import at_end

GONE = "member_left_or_expired"
LOADED = "Finished loading of metadata from __consumer_offsets-0 with epoch 2 in 9ms where 0ms was spent in the "
LOADED += "scheduler. Loaded 7 records which total to 9 bytes."
UNLOADED = "Started unloading metadata for __consumer_offsets-0 with epoch 1"


def said(text: str, second: float, *, broker: int = 1, zone: str = "Z", number: int | None = None) -> BrokerEvent:
    """A line that a broker wrote so many seconds after the epoch."""
    time = datetime.fromtimestamp(second, UTC).isoformat(timespec="milliseconds").removesuffix("+00:00")
    context = f"[GroupCoordinator id={broker} topic=__consumer_offsets partition=0]"
    (found,) = events(f"[{time}{zone}] INFO {context} {text}", "server.log", number or round(second * 10))
    return found


def bound(kind: str, second: float) -> BrokerEvent:
    """The first or the last line of broker 1's file."""
    return said("[GroupId g] Bumped group epoch to 9.", second)._replace(kind=kind, group_id=None, epoch=None)


def gathered(lines: list[BrokerEvent], *rows: Any, ends: float = 1_000) -> GroupHistory:
    """The history of group g from its rows and the lines, the log of which ends after 1000 seconds; their file ``ends``
    then, too.
    """
    others = [*(each for each in lines if each.group_id is None), bound("file_ends", ends)]
    own = [each for each in lines if each.group_id is not None]
    return GroupHistory.gather("g", 1_000_000, [*rows, *own], at_end({}), NO_SHARE_LOGS, NOTHING_LOST, others)


def departure(member_id: str = "m", *, second: int = 20, **more: Any) -> list[Any]:
    left = at(second)
    return [member(member_id, at(1), left, **more), rebalance(3, left, causes=(cause(GONE, member_id, left),))]


def kinds(history: GroupHistory) -> list[str]:
    return [each.kind for row in history.rebalances for each in row.causes]


def test_a_member_that_comes_back_under_its_id_has_a_line_for_each_departure() -> None:
    lines = [
        said("[GroupId g] Member m left the consumer group.", 20),
        said("[GroupId g] Member m fenced from the group because the member session expired.", 40),
    ]
    again = [member("m", at(30), at(40)), rebalance(5, at(40), causes=(cause(GONE, "m", at(40)),))]
    history = gathered(lines, *departure(), *again)
    assert kinds(history) == ["member_left", "member_expired"]
    assert [row.went_by for row in history.memberships] == ["leave", "expiry"]
    assert [each.record for each in history.events if each.group_id] == [at(20), at(40)]


@pytest.mark.parametrize(
    ("text", "is_kept"),
    [
        ("[GroupId g] Member m fenced from the group because the member session expired.", True),
        ("[GroupId g] Member m left the consumer group.", False),
    ],
)
def test_that_the_coordinator_was_away_is_why_a_session_expired(text: str, is_kept: bool) -> None:
    """With lines of brokers, too, the finding counts who lost a session by it."""
    history = gathered([said(text, 20)], *departure(hint=f"{COORDINATOR_AWAY} until then"))
    assert (history.memberships[0].hint or "").startswith(COORDINATOR_AWAY) is is_kept
    assert len(list(lost_members(history))) == is_kept


def test_without_a_zone_lines_are_counted_off_where_each_departure_has_one() -> None:
    lines = [
        said("[GroupId g] Member m left the consumer group.", 20, zone=""),
        said("[GroupId g] Member m fenced from the group because the member session expired.", 40, zone=""),
    ]
    again = [member("m", at(30), at(40)), rebalance(5, at(40), causes=(cause(GONE, "m", at(40)),))]
    assert kinds(gathered(lines, *departure(), *again)) == ["member_left", "member_expired"]
    assert kinds(gathered(lines[:1], *departure(), *again)) == [GONE, GONE]


def test_a_line_of_another_time_is_not_about_the_record() -> None:
    lines = [said("[GroupId g] Member m left the consumer group.", 500)]
    assert kinds(gathered(lines, *departure())) == [GONE]


def test_a_request_may_name_the_instance_alone() -> None:
    text = "[GroupId g] Static member  with instance id i has left group through explicit `LeaveGroup` request; client "
    lines = [said(f"{text}reason: member was removed by an admin", 20)]
    history = gathered(lines, *departure(instance_id="i"))
    (row,) = history.rebalances
    assert (row.causes[0].kind, row.causes[0].detail) == ("member_left", '"member was removed by an admin"')
    assert row.causes[0].hint == "server.log:200"
    assert kinds(gathered(lines, *departure(instance_id="other"))) == [GONE]


def test_explain_says_what_the_lines_say() -> None:
    lines = [
        said(
            "[GroupId g] Member m fenced from the group because it failed to transition from epoch 2 within 4000ms.", 20
        ),
        said("[GroupId g] Computed a new target assignment for epoch 3 with 'range' assignor in 7ms.", 20),
    ]
    history = gathered(lines, *departure(), epoch(3, at(20)))
    texts = [each.text for each in explain(history, history.rebalances[0])]
    assert any(
        "took longer than its rebalance timeout (rebalance timeout of 4.0 s; server.log:200)" in each for each in texts
    )
    assert "The assignor range took 7 ms (server.log:200)." in texts
    assert history.epochs[0].assignor in ("range", epoch(3, at(20)).assignor)


def test_a_skip_of_two_thousand_million_generations_takes_no_time() -> None:
    last, skipped = 2**31 - 1, 2**31 - 5
    row = rebalance(
        last, at(60), group_type="CLASSIC", from_epoch=3, skipped_generations=skipped, began_after_ms=10_000
    )
    lines = [said("Stabilized group g generation 4 with 2 members.", 25)]
    history = gathered(lines, row, epoch(last, at(60), group_type="CLASSIC"))
    assert any("server.log:250" in sentence.text for sentence in explain(history, history.rebalances[0]))


def test_a_conversion_has_no_beginning_in_an_earlier_life_of_the_group() -> None:
    lines = [said("Preparing to rebalance group g in state Empty with old generation 5 (reason: r).", 20)]
    causes = {True: (cause("group_downgraded", None, at(60)),), False: ()}
    for is_converted, each in causes.items():
        row = rebalance(0, at(60), group_type="CLASSIC", from_epoch=5, began_after_ms=None, causes=each)
        (told,) = gathered(lines, row, epoch(0, at(60), group_type="CLASSIC")).rebalances
        assert told.began_after_ms == (None if is_converted else 20_000)


def test_generations_that_never_completed_are_named() -> None:
    row = rebalance(
        5,
        at(60),
        group_type="CLASSIC",
        from_epoch=3,
        skipped_generations=1,
        began_after_ms=10_000,
        duration_max_ms=50_000,
    )
    lines = [
        said("Preparing to rebalance group g in state Stable with old generation 3 (reason: r).", 20),
        said("Stabilized group g generation 4 with 2 members.", 25),
        said("Preparing to rebalance group g in state CompletingRebalance with old generation 4 (reason: s).", 40),
    ]
    history = gathered(lines, row, epoch(5, at(60), group_type="CLASSIC"))
    (told,) = history.rebalances
    assert (told.began_after_ms, told.began_before_ms, told.duration_min_ms, told.duration_max_ms) == (
        20_000,
        20_000,
        40_000,
        40_000,
    )
    texts = [each.text for each in explain(history, told)]
    assert "It began 40 s before it completed: r (server.log:200)." in texts
    assert "All members joined generation 4, which never completed (server.log:250)." in texts


STABLE = "Updating metadata for member {} during Stable; client reason: not provided"


@pytest.mark.parametrize(
    ("why", "leader", "kind"),
    [
        ("Updating metadata for member m; client reason: cached metadata has changed", "m", "topic_metadata_changed"),
        ("Leader m re-joining group during Stable; client reason: not provided", None, "leader_rejoined"),
        ("leader m re-joining group during Stable", None, "leader_rejoined"),
        ("Updating metadata for member m", "m", "leader_rejoined"),
        (STABLE.format("m"), "m", "leader_rejoined"),
        (STABLE.format("m"), "other", "member_changed"),
        (STABLE.format("m"), None, "unknown"),
        ("Updating metadata for member m during CompletingRebalance", "m", "unknown"),
    ],
)
def test_a_cause_that_the_log_does_not_show_is_what_the_line_says(why: str, leader: str | None, kind: str) -> None:
    row = rebalance(
        4, at(60), group_type="CLASSIC", from_epoch=3, began_after_ms=10_000, causes=(cause("unknown", None, at(60)),)
    )
    begun = said(f"Preparing to rebalance group g in state Stable with old generation 3 (reason: {why}).", 20)
    before = epoch(3, at(10), group_type="CLASSIC")._replace(leader=leader)
    (told,) = gathered([begun], before, row, epoch(4, at(60), group_type="CLASSIC")).rebalances
    (found,) = told.causes
    assert (found.kind, found.member_id) == (kind, "m" if kind in ("leader_rejoined", "member_changed") else None)
    assert (found.hint or "").startswith("server.log:200")
    assert why.rpartition(": ")[2] in f"{found.detail} {found.hint}"


@pytest.mark.parametrize(("second", "is_told"), [(19, True), (9, False)])
def test_a_leader_that_joins_again_once_the_group_is_loaded(second: int, is_told: bool) -> None:
    row = rebalance(
        4, at(60), group_type="CLASSIC", from_epoch=3, began_after_ms=10_000, causes=(cause("unknown", None, at(60)),)
    )
    loaded = "Finished loading of metadata from __consumer_offsets-0 with epoch 2 in 9ms where 0ms was spent in the "
    lines = [
        said(f"{loaded}scheduler. Loaded 7 records which total to 9 bytes.", second),
        said(
            "Preparing to rebalance group g in state Stable with old generation 3 "
            "(reason: Leader m re-joining group during Stable).",
            20 if is_told else 12,
        ),
    ]
    (told,) = gathered(lines, row, epoch(4, at(60), group_type="CLASSIC")).rebalances
    (found,) = told.causes
    assert ("had just loaded" in (found.detail or "")) is is_told


def test_nobody_is_blamed_while_the_coordinator_was_away() -> None:
    row = rebalance(3, at(10), finished=at(200), delayed_by="m", duration_min_ms=190_000, members_after=2)
    lines = [said(UNLOADED, 20), said(LOADED, 150, broker=2)]
    limits = load(environment={}).findings
    assert "delayed by" in next(slow(gathered([], row), limits)).detail
    history = gathered(lines, row)
    assert history.rebalances[0].delayed_by is None
    finding = next(slow(history, limits))
    assert "delayed by" not in finding.detail
    assert "the coordinator was away meanwhile (server.log:1500)" in finding.detail
    texts = [each.text for each in explain(history, history.rebalances[0])]
    assert any("was away from 1970-01-01T00:00:20.000Z until 1970-01-01T00:02:30.000Z" in each for each in texts)
    restless = [
        rebalance(number, at(start), finished=at(end), outcome="superseded", members_behind=1, behind=("m",))
        for number, start, end in ((3, 10, 200), (4, 200, 900))
    ]
    assert "m was behind in 2 of them" in next(never_converges(gathered([], *restless), limits)).detail
    assert "m was behind in 1 of them" in next(never_converges(gathered(lines, *restless), limits)).detail
    later = rebalance(4, at(300), finished=at(310), delayed_by="m")
    assert gathered(lines, later).rebalances[0].delayed_by == "m"


def test_that_another_broker_stops_is_no_absence() -> None:
    loaded = "Finished loading of metadata from __consumer_offsets-0 with epoch {} in 9ms where 0ms was spent in the "
    loaded += "scheduler. Loaded 7 records which total to 9 bytes."
    stops = said("Shutting down.", 20, broker=2)._replace(log_partition=None)
    lines = [stops, said(loaded.format(1), 30), stops._replace(timestamp_ms=40_000), said(loaded.format(2), 90)]
    assert [each.since for each in absences(lines)] == [None, None]
    lines[2] = lines[2]._replace(broker_id=1)
    assert [each.since for each in absences(lines)] == [None, lines[2]]


def test_an_offset_whose_expiry_has_a_line_expired() -> None:
    lines = [said("[GroupId g] Expired offset for partition=t-0", 90)]
    removals = tuple(Removal(at(second), 5, "expired or deleted") for second in (90, 500))
    row = PartitionCommits("t", 0, 1, at(1), at(1), None, (), removals)
    (told,) = gathered(lines, row).commits
    assert [each.how for each in told.removals] == ["expired", "expired or deleted"]


@pytest.mark.parametrize(
    ("text", "how"),
    [
        ("Generated 2 tombstone records while cleaning up group metadata in 1 milliseconds.", "expired"),
        (
            "Generated 2 tombstone records in 1 milliseconds while deleting offsets for topics "
            "[DeletedTopic[id=wDb6r1grQQmaY2pLaxzotw, name=t]].",
            "topic deleted",
        ),
        (
            "Generated 2 tombstone records in 1 milliseconds while deleting offsets for partitions [t-0, t-1].",
            "topic deleted",
        ),
        (
            "Generated 2 tombstone records in 1 milliseconds while deleting offsets for partitions [t-t-0].",
            EXPIRED_OR_DELETED,
        ),
    ],
)
def test_a_line_says_why_the_tombstones_that_follow_at_once_are_written(text: str, how: str) -> None:
    def removed(line: BrokerEvent, second: float = 90) -> str:
        removal = Removal(at(90)._replace(timestamp_ms=round(second * 1000)), 5, EXPIRED_OR_DELETED)
        (row,) = gathered([line], PartitionCommits("t", 0, 1, at(1), at(1), None, (), (removal,))).commits
        return row.removals[0].how

    assert removed(said(text, 90)) == how
    assert removed(said(text, 90), 90.2) == EXPIRED_OR_DELETED
    assert removed(said(text, 90), 89.9) == EXPIRED_OR_DELETED
    assert removed(said(text, 90)._replace(log_partition=1)) == EXPIRED_OR_DELETED
    before_4_0 = said(text, 90)._replace(log_partition=None)  # one line for all partitions, behind the records
    assert removed(before_4_0) == removed(before_4_0, 89.97) == how
    assert removed(before_4_0, 90.02) == removed(before_4_0, 89.9) == EXPIRED_OR_DELETED


def test_a_reason_that_is_not_known_decides_nothing_and_is_quoted() -> None:
    history = gathered(
        [said("[GroupId g] Member m fenced from the group because its clock is wrong.", 20)], *departure()
    )
    assert kinds(history) == [GONE]
    assert history.rebalances[0].causes[0].hint == (
        "server.log:200: [GroupId g] Member m fenced from the group because its clock is wrong."
    )
    assert history.events[0].record == at(20)


def test_a_file_of_another_time_is_told_so() -> None:
    begins = bound("file_begins", 500)
    history = gathered([begins], *departure(), ends=600)
    assert history.rebalances[0].causes[0].hint == history.memberships[0].hint == "no broker log of that time is given"
    texts = [each.text for each in explain(history, history.rebalances[0])]
    assert ("The given broker logs cover: server.log 1970-01-01T00:08:20.000Z to 1970-01-01T00:10:00.000Z.") in texts
    near = gathered([begins._replace(timestamp_ms=0)], *departure(), ends=600)
    assert near.rebalances[0].causes[0].hint == "the broker logs of that time have no line about it"
    assert not [each for each in explain(near, near.rebalances[0]) if each.text.startswith("Broker logs")]


def test_explain_says_what_the_coordinator_refused_meanwhile() -> None:
    texts = {
        "Cannot upgrade classic group g to consumer group because online upgrade is disabled.": (
            "The group was not converted: online upgrade is disabled (server.log:300)."
        ),
        "[GroupId g] Static member n with instance id i cannot join the group because the instance id is owned by "
        "member m.": "Member n was turned away: member m has the instance id i (server.log:300).",
        "Failed to write records to __consumer_offsets-0 because this broker is no longer the leader of the "
        "partition.": "A decision about log partition 0 could not be written at 1970-01-01T00:00:30.000Z: this broker "
        "is no longer the leader of the partition (server.log:300).",
    }
    row = rebalance(3, at(10), finished=at(60))
    for text, told in texts.items():
        history = gathered([said(text, 30)], row)
        assert told in [each.text for each in explain(history, row)]
        for second in (9, 61):
            other = gathered([said(text, second)], row)
            assert not [each for each in explain(other, row) if "server.log" in each.text]


def test_how_long_a_leader_took_to_assign() -> None:
    row = rebalance(4, at(60), group_type="CLASSIC", from_epoch=3, began_after_ms=10_000)
    lines = [
        said("Stabilized group g generation 4 with 2 members.", 20),
        said("Stabilized group g generation 4 with 2 members.", 58),
        said("Assignment received from leader m for group g for generation 4. The group has 2 members, 0 of which", 60),
    ]
    history = gathered(lines, row, epoch(4, at(60), group_type="CLASSIC"))
    texts = [each.text for each in explain(history, history.rebalances[0])]
    assert "The leader's assignment came 2.0 s after all members had joined (server.log:580, server.log:600)." in texts


def test_an_epoch_that_the_log_never_reached_is_a_finding() -> None:
    limits = load(environment={}).findings
    bumped = said("[GroupId g] Bumped group epoch to 4.", 20)
    failed = said("Writing records to __consumer_offsets-0 failed due to: the log is offline.", 21)
    present = epoch(3, at(10), is_open=True)

    def told(*lines: BrokerEvent, **more: Any) -> list[str]:
        history = gathered(list(lines), epoch(3, at(10), is_open=True)._replace(**more))
        return [each.detail for each in decisions_not_kept(history, limits)]

    assert present.is_open
    assert told(bumped, failed) == [
        "the broker says that epoch 4 began; the log still has epoch 3: server.log:200: [GroupId g] Bumped group epoch "
        "to 4.; it could not be written: the log is offline (server.log:210)"
    ]
    assert told(said("[GroupId g] Bumped group epoch to 3.", 20)) == []
    assert told(said("[GroupId g] Bumped group epoch to 4.", 500)) == []
    assert told(said("[GroupId g] Bumped group epoch to 4.", 12)) == []
    assert told(bumped, history_complete=False) == []


@pytest.mark.parametrize("moved", [[said(LOADED, 40, broker=2)], [said(UNLOADED, 31)], [said(LOADED, 17, broker=2)]])
@pytest.mark.parametrize("text", ["[GroupId g] Bumped group epoch to 4.", "[GroupId g] Member m left the share group."])
def test_what_a_broker_decided_that_was_not_the_coordinator_is_void(text: str, moved: list[BrokerEvent]) -> None:
    """A broker that stood still ends the sessions of members that another coordinator serves by then."""
    rows, limits = [epoch(3, at(10)), member("m", at(5))], load(environment={}).findings
    assert len(list(decisions_not_kept(gathered([said(text, 20)], *rows), limits))) == 1
    assert list(decisions_not_kept(gathered([said(text, 20), *moved], *rows), limits)) == []
    lost = LostRecords({("__consumer_offsets", 0): [(15, 16)]})
    history = gathered([said(text, 20)], *rows)
    history = GroupHistory.gather("g", 1_000_000, [*rows, *history.events], at_end({}), NO_SHARE_LOGS, lost)
    assert list(decisions_not_kept(history, limits)) == [], "the record may be among those that are lost"


def test_what_a_broker_decided_that_was_killed_before_it_was_written_is_void() -> None:
    """Its file ends, or goes on with another process; that another broker took over is in the file of that one only."""
    decided, rows = said("[GroupId g] Member m left the share group.", 20), [epoch(3, at(10)), member("m", at(5))]
    limits = load(environment={}).findings

    def told(*lines: BrokerEvent, ends: float) -> int:
        return len(list(decisions_not_kept(gathered([decided, *lines], *rows, ends=ends), limits)))

    starts = said("Kafka version: 4.3.1", 300)
    assert starts.kind == "broker_release"
    assert told(ends=620) == told(starts._replace(timestamp_ms=19_000), ends=900) == 1
    assert told(ends=619) == told(starts, ends=900) == 0
    another = bound("file_ends", 900)._replace(broker_id=2, file="other.log")
    assert told(another, ends=100) == 0
    assert told(another._replace(broker_id=1), ends=100) == 1, "the next file of the same broker"


def test_a_classic_group_is_written_only_with_its_next_generation() -> None:
    """Members have up to max.poll.interval.ms to join it, and a leader that fails keeps it from being complete."""
    rows = [epoch(3, at(10), group_type="CLASSIC"), member("m", at(10), group_type="CLASSIC")]
    left = said("[Group g] Dynamic member m has left group through explicit `LeaveGroup` request; client reason: x", 20)
    limits = load(environment={}).findings
    assert list(decisions_not_kept(gathered([left], *rows), limits)) == []
    assigned = said("Assignment received from leader n for group g for generation 4. The group has 1 members, 0 of", 30)
    found = [row.detail.split(" (")[0] for row in decisions_not_kept(gathered([left, assigned], *rows), limits)]
    assert [detail.partition(": ")[0] for detail in found] == [
        "the broker says that 1 member left; the log still has them",
        "the broker says that generation 4 began; the log still has generation 3",
    ]
    written = [
        rows[0]._replace(ended=at(30), is_open=False, ended_by="next epoch"),
        epoch(4, at(30), group_type="CLASSIC"),
    ]
    assert list(decisions_not_kept(gathered([assigned], *written), limits)) == []


def test_a_coordinator_that_loads_a_group_knows_nothing_of_a_rebalance_before() -> None:
    limits, present = load(environment={}).findings, epoch(3, at(10), group_type="CLASSIC")
    began = "Preparing to rebalance group g in state Stable with old generation 3 (reason: adding m)."
    lines = [said(began, 400), said(LOADED, 410, broker=2)]
    assert list(not_completed(gathered(lines, present), limits)) == []
    again = gathered([*lines, said(began, 500, broker=2)], present)
    (found,) = not_completed(again, limits)
    assert found.value == 500_000
    lost = LostRecords({("__consumer_offsets", 0): [(15, 16)]})
    history = GroupHistory.gather("g", 1_000_000, [present, *again.events], at_end({}), NO_SHARE_LOGS, lost)
    assert list(not_completed(history, limits)) == [], "its end may be among the records that are lost"


def test_members_that_start_just_before_the_log_ends_have_not_failed() -> None:
    """Each that comes while the leader assigns begins a new generation."""
    limits, present = load(environment={}).findings, epoch(3, at(10), group_type="CLASSIC")
    begins = "Preparing to rebalance group g in state CompletingRebalance with old generation {} (reason: adding m)."
    assert (
        list(not_completed(gathered([said(begins.format(n), 990 + n / 10) for n in range(3, 40)], present), limits))
        == []
    )


def test_a_leader_that_fails_for_ever_is_one_finding_with_the_reason_that_is_named_most() -> None:
    """Each round has a number that no record has: the leader of a sticky group fails after a topic was deleted."""
    limits = load(environment={}).findings
    present = epoch(3, at(10), is_open=True, group_type="CLASSIC")
    begins = "Preparing to rebalance group g in state {} with old generation {} (reason: {})."
    rounds = [said(begins.format("Stable", 3, "Updating metadata for member m during Stable"), 400)]
    for number in range(4, 4 + limits.failed_generations):
        why = f"Updating metadata for member m{number} during CompletingRebalance; client reason: rebalance failed"
        rounds.append(said(begins.format("CompletingRebalance", number, why), 400 + number))
    (found,) = not_completed(gathered(rounds, present), limits)
    assert (found.kind, found.value, found.is_open) == ("generations_failed", limits.failed_generations, True)
    assert (found.since_ms, found.until_ms) == (400_000, 1_000_000)
    assert f"11 rebalances began, {limits.failed_generations} of them as: rebalance failed (server.log:" in found.detail
    (slow,) = not_completed(gathered(rounds[:5], present), limits)
    assert slow.kind == "slow_rebalance"


def test_a_rebalance_that_has_not_completed_is_a_finding_and_so_is_a_refused_conversion() -> None:
    limits = load(environment={}).findings
    present = epoch(3, at(10), is_open=True, group_type="CLASSIC")
    began = said("Preparing to rebalance group g in state Stable with old generation 3 (reason: adding m).", 400)
    (found,) = not_completed(gathered([began], present), limits)
    assert (found.kind, found.value, found.since_ms) == ("slow_rebalance", 600_000, 400_000)
    assert "began after generation 3: adding m (server.log:4000)" in found.detail
    assert not list(not_completed(gathered([began._replace(timestamp_ms=999_999)], present), limits))
    assert not list(not_completed(gathered([began._replace(timestamp_ms=9_000)], present), limits))
    emptied = said("Group g with generation 4 is now empty.", 401)
    assert not list(not_completed(gathered([began, emptied], present), limits)), "its record is not in this log"
    refused = [said("Cannot downgrade consumer group g to classic group because x.", second) for second in (20, 30)]
    (found,) = conversions_refused(gathered(refused, present), limits)
    assert (found.value, found.detail) == (2, "not converted 2 times: x (server.log:200)")
    assert (found.since_ms, found.until_ms) == (20_000, 30_000)


@pytest.mark.parametrize(
    "text",
    [
        "[GroupId g] Static member n with instance id i cannot join the group because the instance id is owned by "
        "member m.",
        "Request memberId=n for static member with groupInstanceId=i is fenced by existing memberId=m during operation "
        "heartbeat",
    ],
)
def test_a_client_that_was_turned_away_is_a_finding_of_the_group_of_its_instance(text: str) -> None:
    limits = load(environment={}).findings
    owner = member("m", at(1), instance_id="i"), epoch(3, at(10), is_open=True)
    (found,) = static_members(gathered([said(text, 20), said(text, 21)], *owner), limits)
    assert (found.kind, found.value, found.subject) == ("static_member_fenced", 1, "instance i")
    assert found.detail == "two clients have the instance id i: 1 client turned away (server.log:200)"
    crashed = member("m", at(1), at(60), instance_id="i", hint="expired: a static member that leaves says so first")
    (found,) = static_members(gathered([said(text, 20)], crashed, *owner[1:]), limits)
    assert found.kind == "static_member_expired", "the same client came back before its session had ended"
    removed = at(60)._replace(offset=at(60).offset - 2)  # before the member itself, in the same batch
    had = assignment("m", 0, at(10), removed)
    for second, kinds_found in (19, ["static_member_expired"]), (21, ["static_member_expired", "static_member_fenced"]):
        commit = PartitionCommits("t", 0, 1, at(second), at(second), 5, (), ())
        took = assignment("m", 1, at(second), removed)
        for sign in (commit, took):
            told = static_members(gathered([said(text, 20)], crashed, *owner[1:], had, sign), limits)
            assert sorted(row.kind for row in told) == kinds_found, "it was there if it gave a sign afterwards"
    crashed = crashed._replace(left=at(90))
    assert len(list(static_members(gathered([said(text, 20)], crashed, *owner[1:]), limits))) == 2
    other = gathered([said(text.replace("=m ", "=x ").replace("=n ", "=y "), 20)], *owner)
    assert bool(list(static_members(other, limits))) == ("[GroupId g]" in text)

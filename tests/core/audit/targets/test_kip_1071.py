"""The worked examples of KIP-1071, written by the model, are judged as what they are: right."""

from collections.abc import Callable
from typing import Any

import pytest

from coordinator_core.assignors.inputs import Tasks
from coordinator_core.audit.group_audit import GroupAudit
from coordinator_core.audit.rows import Basis, TargetAuditRow, Verdict
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.audit.targets.conversions import _judge
from coordinator_core.audit.targets.verdict import GroupGap
from coordinator_core.groups.rules import Rule
from coordinator_core.records import CoordinatorRecord, Family, Fields, RecordType
from tests.core.audit.transcribed import (
    EVERYTHING,
    KIP_1071,
    TRANSCRIPTS,
    RecordedPlay,
    audited,
    broken,
    group_records,
    played,
)
from tests.core.coordinator.transcript import GROUP

TARGET = RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER
NAMES = sorted(path.stem for path in TRANSCRIPTS.glob("streams_*.txt"))
BY_OFFSETS = {"streams_migration": [24, 25], "streams_processes": [4, 6, 7], "streams_warmup": [4, 5]}
"""The targets of each transcript that depend on task offsets."""


@pytest.mark.parametrize("name", NAMES)
def test_no_worked_example_is_called_wrong(name: str) -> None:
    rows = [row for row in audited(played(name)) if row.basis is not Basis.LEADER]
    assert rows
    unknown = [row for row in rows if row.verdict is Verdict.UNKNOWN]
    assert [row.epoch for row in unknown] == BY_OFFSETS.get(name, [])
    assert all((row.missing or "").startswith("task offsets") for row in unknown)
    assert {row.verdict for row in rows} - {Verdict.UNKNOWN} == {Verdict.IDENTICAL}


@pytest.mark.parametrize("name", NAMES)
def test_the_log_shows_its_profile(name: str) -> None:
    """Without the setting no target is called wrong, either: the group's records prove what KIP-1071 defines."""
    play = played(name)
    rows = [row for row in audited(play, AuditSettings()) if row.basis is not Basis.LEADER]
    assert {row.verdict for row in rows} <= {Verdict.IDENTICAL, Verdict.UNKNOWN}
    shows = any("acceptable.recovery.lag" in str(each.value) for each in group_records(play))
    recomputed = [row for row in rows if row.verdict is Verdict.IDENTICAL and row.basis is Basis.ASSIGNOR]
    assert all(("kip-1071" in (row.fitted or "")) == shows for row in recomputed)


@pytest.mark.parametrize("name", NAMES)
def test_no_worked_example_breaks_a_rule(name: str) -> None:
    assert broken(played(name)) == []


@pytest.mark.parametrize(
    ("change", "detail"),
    [
        (lambda value: value.update(epoch=2), "topology epoch 2 follows 0"),
        (
            lambda value: value.update(
                epoch=0, subtopologies=[value["subtopologies"][0] | {"sourceTopics": ["other"]}]
            ),
            "topology epoch 0 has another topology",
        ),
    ],
)
def test_a_topology_has_the_next_epoch(change: Callable[[Fields], Any], detail: str) -> None:
    play = played("streams_topology_update")
    topologies = [each for each in play.log if each.type == RecordType.STREAMS_GROUP_TOPOLOGY]
    change(topologies[1].value)
    wrong = [each for each in broken(play) if each.rule is Rule.TOPOLOGY_EPOCH_WRONG]
    assert (wrong[0].at, wrong[0].detail) == (topologies[1].at, detail)
    assert all("was validated" in each.detail for each in wrong[1:]), "the epochs that follow name the right one"


def test_the_profile_decides_about_the_assignor() -> None:
    play = played("streams_warmup")
    assert {row.assignor for row in audited(play)} == {"highly_available"}
    released = audited(play, AuditSettings(profile="kafka-4.3.1"))
    assert {row.assignor for row in released} == {"sticky"}
    assert {row.verdict for row in released} == {Verdict.IDENTICAL, Verdict.DIVERGENT}


def test_a_configured_assignor_is_used() -> None:
    assert [row.assignor for row in audited(played("streams_configs"))] == 4 * ["highly_available"] + ["sticky"]


def test_what_is_unknown_names_the_offsets_that_explain_it() -> None:
    fourth = _of_epoch(audited(played("streams_warmup")), 4)
    assert fourth.missing == (
        "task offsets, which members report to the coordinator and no record has; highly_available gives the recorded "
        "target if these tasks have caught up: 0_1 on process B"
    )
    assert (fourth.difference_count, fourth.differences, fourth.expected) == (None, (), None)


def test_copies_of_a_conversion_are_compared_with_what_they_copy() -> None:
    rows = {row.basis: row for row in audited(played("streams_migration"))}
    upgrade, downgrade = rows[Basis.UPGRADE], rows[Basis.DOWNGRADE]
    assert (upgrade.epoch, upgrade.verdict, upgrade.members) == (23, Verdict.IDENTICAL, 2)
    assert upgrade.fitted == "the classic group's assignment"
    assert (downgrade.epoch, downgrade.verdict, downgrade.members) == (25, Verdict.IDENTICAL, 2)
    assert downgrade.fitted == "the streams group's last target; warm-up tasks are standby tasks"


def test_a_wrong_copy_diverges() -> None:
    play = _changed("streams_migration", 23, "A", lambda value: value["standbyTasks"][0].update(partitions=[1, 3]))
    row = _of_epoch(audited(play), 23, Basis.UPGRADE)
    assert (row.verdict, row.differences) == (Verdict.DIVERGENT, ("standby task 0_5: A expected, no member recorded",))
    play.log[:] = [each._replace(at=each.at._replace(timestamp_ms=0)) for each in play.log]
    assert _of_epoch(audited(play), 23, Basis.UPGRADE).verdict is Verdict.DIVERGENT, "1970 is a time"
    play.log[:] = [each._replace(at=each.at._replace(timestamp_ms=-1)) for each in play.log]
    timeless = _of_epoch(audited(play), 23, Basis.UPGRADE)
    assert (timeless.verdict, timeless.differences) == (Verdict.UNKNOWN, ())
    assert (timeless.missing or "").startswith("the time of the records")


@pytest.mark.parametrize(
    ("batch", "unbroken_from", "verdict"),
    [(4, 3, Verdict.IDENTICAL), (4, 6, Verdict.UNKNOWN), (-1, 3, Verdict.UNKNOWN), (4, None, Verdict.UNKNOWN)],
)
def test_behind_a_gap_a_copy_fits_only_if_its_whole_batch_is_there(
    batch: int, unbroken_from: int | None, verdict: Verdict
) -> None:
    record = played("streams_migration").log[-1]._replace(batch=batch)
    copy = {"A": Tasks(active={"0": [1]})}
    gap = GroupGap("offsets 1 to 2", unbroken_from)
    assert _judge(copy, copy, gap, record, "").verdict is verdict
    nothing = {"A": Tasks()}
    assert _judge(nothing, nothing, gap, record, "").verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("name", "epoch", "member", "change", "broken"),
    [
        (
            "streams_warmup",
            4,
            "A",
            lambda value: value["activeTasks"][0].update(partitions=[0, 2]),
            "active task 0_3: given to no member",
        ),
        (
            "streams_warmup",
            3,
            "B",
            lambda value: value["warmupTasks"][0].update(partitions=[1, 2, 3]),
            "3 warm-up tasks: num.warmup.replicas is 2",
        ),
        (
            "streams_configs",
            4,
            "B",
            lambda value: value["standbyTasks"][0].update(partitions=[0, 1]),
            "task 0_1: given to process B 2 times",
        ),
        (
            "streams_warmup",
            5,
            "B",
            lambda value: value.update(standbyTasks=[{"subtopologyId": "0", "partitions": [0]}]),
            "standby task 0_0: given 1 times, num.standby.replicas is 0",
        ),
        (
            "streams_warmup",
            5,
            "B",
            lambda value: value.update(standbyTasks=[{"subtopologyId": "7", "partitions": [0]}]),
            "standby task 7_0: given to B, which may not have it",
        ),
        (
            "streams_topology_update",
            7,
            "C",
            lambda value: value["activeTasks"][0].update(partitions=[3, 4, 5, 6, 7]),
            "active task 0_8: given to no member",
        ),
    ],
)
def test_invariants_are_judged_without_task_offsets(
    name: str, epoch: int, member: str, change: Callable[[Fields], Any], broken: str
) -> None:
    row = _of_epoch(audited(_changed(name, epoch, member, change)), epoch)
    assert row.verdict is Verdict.INVALID
    assert broken in row.differences


def test_stale_members_get_nothing_new() -> None:
    def swap(value: Fields) -> None:
        value["activeTasks"][0]["partitions"] = [3, 5, 6, 7, 8]

    play = _changed("streams_topology_update", 7, "C", swap)
    extra = next(at for at, record in enumerate(play.log) if _is_target(record, "C") and _epoch_after(play, at) == 7)
    record = play.log[extra]
    value = {"activeTasks": [{"subtopologyId": "0", "partitions": [0, 1, 2, 4]}], "standbyTasks": [], "warmupTasks": []}
    play.log.insert(extra, record._replace(key={**record.key, "memberId": "A"}, value=value))
    row = _of_epoch(audited(play), 7)
    assert row.verdict is Verdict.INVALID
    assert "active task 0_4: given to A, whose topology is older than the group's" in row.differences


def test_one_process_leaves_offsets_nothing_to_decide() -> None:
    play = _changed(
        "streams_warmup",
        2,
        "A",
        lambda value: value.update(warmupTasks=[{"subtopologyId": "0", "partitions": []}], activeTasks=[]),
    )
    row = _of_epoch(audited(play), 2)
    assert row.verdict is Verdict.INVALID
    assert row.difference_count == 8


def _of_epoch(rows: list[TargetAuditRow], epoch: int, basis: Basis = Basis.ASSIGNOR) -> TargetAuditRow:
    return next(row for row in rows if row.epoch == epoch and row.basis is basis)


def _changed(name: str, epoch: int, member: str, change: Callable[[Fields], Any]) -> RecordedPlay:
    """The transcript with the member's target of this epoch changed."""
    play = played(name)
    for at, record in enumerate(play.log):
        if _is_target(record, member) and _epoch_after(play, at) == epoch:
            change(record.value)
            return play
    raise LookupError(f"{name} has no target of {member} at epoch {epoch}")


def _is_target(record: CoordinatorRecord, member: str) -> bool:
    return record.type == TARGET and record.value is not None and record.key["memberId"] == member


def _epoch_after(play: RecordedPlay, at: int) -> int:
    """The epoch of the next target metadata after this record."""
    following = (each for each in play.log[at:] if each.type == RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA)
    return next(each.value["assignmentEpoch"] for each in following if each.value is not None)


@pytest.mark.parametrize("name", ["streams_migration", "streams_regex", "streams_topology_update", "streams_warmup"])
def test_a_night_that_ends_anywhere_changes_no_row(name: str) -> None:
    play = played(name)
    records = group_records(play)
    whole = GroupAudit.begin(GROUP, Family.GROUP, play.history, EVERYTHING, KIP_1071, from_start=True)
    expected = [row for record in records for row in whole.feed(record, 0)]
    for cut in range(1, len(records)):
        first = GroupAudit.begin(GROUP, Family.GROUP, play.history, EVERYTHING, KIP_1071, from_start=True)
        rows = [row for record in records[:cut] for row in first.feed(record, 0)]
        second = GroupAudit.resume(first.state(), play.history, EVERYTHING, KIP_1071)
        rows += [row for record in records[cut:] for row in second.feed(record, 0)]
        assert rows == expected

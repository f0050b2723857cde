"""Targets of the small real log: identical as written, noticed when changed."""

import random
from collections import Counter
from copy import deepcopy

import pytest

from coordinator_core.assignors.inputs import Tasks
from coordinator_core.audit.rows import Basis, TargetAuditRow, Verdict
from coordinator_core.audit.settings import AuditSettings
from coordinator_core.audit.targets.auditor import TargetAuditor
from coordinator_core.audit.targets.epoch_groups import EARLIER_GROUP
from coordinator_core.cluster.snapshot_settings import ResourceKind, SettingRun, SnapshotSettings
from coordinator_core.errors import InputError
from coordinator_core.groups.group import Group
from coordinator_core.groups.group_type import GroupType
from coordinator_core.history.coverage import Coverage
from coordinator_core.records import CoordinatorRecord, RecordType
from tests.core.audit.mutate import MUTATIONS, TARGETS, mutated
from tests.core.audit.targets.verdicts import audit_group
from tests.core.builders import GroupLog, at_once, without_times
from tests.core.recorded import EVERYTHING, sample
from tests.core.stored import next_auditor

STREAMS_TARGET = RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER
STREAMS = (RecordType.STREAMS_GROUP_METADATA, STREAMS_TARGET)


def audited(
    records: list[CoordinatorRecord], coverage: Coverage | None = EVERYTHING, settings: AuditSettings | None = None
) -> list[TargetAuditRow]:
    group = Group(records[0].group_id, from_start=True)
    return list(audit_group(records, group, sample()[1], settings, coverage))


def test_every_target_of_the_samples_is_identical() -> None:
    rows = [row for records in sample()[0].values() for row in audited(records)]
    assert {row.verdict for row in rows if row.assignor != "stream"} == {Verdict.IDENTICAL}
    seen = Counter((str(row.group_type), str(row.basis)) for row in rows)
    assert seen["CONSUMER", Basis.ASSIGNOR] > 20
    assert seen["CLASSIC", Basis.LEADER] > 20
    assert {kind for kind, _ in seen} == {"CLASSIC", "CONSUMER", "SHARE", "STREAMS"}
    for row in rows:
        assert row.expected == row.recorded
        assert row.opened.offset <= row.at.offset


@pytest.mark.parametrize("kind", MUTATIONS)
def test_a_changed_target_is_noticed(kind: str) -> None:
    """A leader's assignment without a partition may be right for topics as they were before: the verdict says so."""
    rng, changes = random.Random(kind), 0
    for records in sample()[0].values():
        auditor = TargetAuditor(Group(records[0].group_id, from_start=True), None, sample()[1], coverage=EVERYTHING)
        for index, record in enumerate(records):
            if record.type in (*TARGETS, RecordType.GROUP_METADATA) and rng.random() < 0.1:
                changed = mutated(record, MUTATIONS[kind], _targets_of(auditor), rng)
                if changed is not None:
                    rows = audited([*records[:index], changed, *records[index + 1 :]])
                    odd = [
                        row for row in rows if row.verdict != Verdict.IDENTICAL or "had changed" in (row.fitted or "")
                    ]
                    odd = [row for row in odd if row.assignor != "stream"]
                    assert odd
                    assert odd[0].differences or odd[0].basis == Basis.LEADER
                    changes += 1
            auditor.feed(record)
    assert changes > 5


def test_a_swapped_owner_is_named() -> None:
    """The smallest readable difference, with both members and the topic's name."""
    for records in sample()[0].values():
        auditor = TargetAuditor(Group(records[0].group_id, from_start=True), None, sample()[1], coverage=EVERYTHING)
        for index, record in enumerate(records):
            if record.type == RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER and record.value is not None:
                changed = mutated(record, MUTATIONS["drop"], _targets_of(auditor), random.Random(1))
                if changed is not None:
                    rows = audited([*records[:index], changed, *records[index + 1 :]])
                    row = next(row for row in rows if row.verdict != Verdict.IDENTICAL)
                    assert f"{record.key['memberId']} expected, no member recorded" in row.differences[0]
                    assert row.differences[0].startswith("p")
                    return
            auditor.feed(record)
    pytest.fail("no target to change")


def test_a_gap_gives_unknown_and_says_where() -> None:
    """A member's join is missing: its target would be that of a stranger."""
    records = next(
        records
        for records in sample()[0].values()
        if sum(record.type == RecordType.CONSUMER_GROUP_MEMBER_METADATA for record in records) > 2
    )
    lost = next(
        index for index, record in enumerate(records) if record.type == RecordType.CONSUMER_GROUP_MEMBER_METADATA
    )
    offset, partition = records[lost].at.offset, records[lost].at.partition
    coverage = Coverage({partition: [(0, offset - 1), (offset + 1, 10_000)]})
    rows = audited(records[:lost] + records[lost + 1 :], coverage)
    odd = [row for row in rows if row.verdict != Verdict.IDENTICAL]
    assert odd
    assert {row.verdict for row in odd} == {Verdict.UNKNOWN}
    assert all("compacted or cut" in (row.missing or "") for row in odd)


def test_the_state_in_json_goes_on_anywhere() -> None:
    rng = random.Random(3)
    for records in sample()[0].values():
        auditor = TargetAuditor(Group(records[0].group_id, from_start=True), None, sample()[1], coverage=EVERYTHING)
        pieces = []
        for record in records:
            if rng.random() < 0.2:
                auditor = next_auditor(auditor, sample()[1], EVERYTHING)
            pieces += auditor.feed(record)
        assert pieces == audited(records)


def test_the_default_assignor_is_the_one_that_snapshots_show() -> None:
    """The members of the samples that choose none got what uniform gives."""
    topics = deepcopy(sample()[1])
    run = SettingRun(ResourceKind.BROKER, "1", "group.consumer.assignors", "range,uniform", 0, 1 << 60)
    topics.snapshots = SnapshotSettings.of([], [run])
    rows = [
        row
        for records in sample()[0].values()
        for row in audit_group(records, Group(records[0].group_id, from_start=True), topics, None, EVERYTHING)
    ]
    doubts = [row for row in rows if row.verdict is Verdict.UNKNOWN]
    assert len(doubts) > 3
    assert {row.assignor for row in doubts} == {"range"}
    assert all("brokers' default assignor" in (row.missing or "") for row in doubts)


def test_what_an_assignor_of_ones_own_gives_is_judged_by_what_holds_of_all() -> None:
    """A broker may have assignors that are none of Kafka's (``group.consumer.assignors``), or of a later release."""
    judged: list[TargetAuditRow] = []
    for records in sample()[0].values():
        judged += audited([_choosing(record, "example.Mine") for record in records])
    judged = [row for row in judged if row.assignor == "example.Mine"]
    assert len(judged) > 10
    assert {(row.verdict, row.basis, row.missing) for row in judged} == {(Verdict.SOUND, Basis.INVARIANTS, None)}


def test_an_assignor_of_ones_own_gives_nothing_to_two() -> None:
    """Each target record gets what all of its operation have: in operations of several members some have two owners."""
    targets = RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER
    verdicts = set[Verdict]()
    for records in sample()[0].values():
        chosen = [_choosing(record, "example.Mine") for record in records]
        given = [
            entry for each in records if each.type == targets and each.value for entry in each.value["topicPartitions"]
        ]
        value = {"topicPartitions": given[:1]}
        changed = [each._replace(value=value) if each.type == targets and each.value else each for each in chosen]
        verdicts |= {row.verdict for row in audited(changed) if row.basis == Basis.INVARIANTS}
    assert Verdict.INVALID in verdicts


@pytest.mark.parametrize("is_doubled", [False, True])
def test_a_streams_assignor_that_the_settings_name_is_judged_by_what_holds_of_all(is_doubled: bool) -> None:
    """``streams.assignor.name`` of 4.4 names one of a later release, as ``balanced`` (pull request 23419)."""
    topics = deepcopy(sample()[1])
    groups = [records for records in sample()[0].values() if any(each.type in STREAMS for each in records)]
    runs = [
        SettingRun(ResourceKind.GROUP, records[0].group_id, "streams.assignor.name", "balanced", 0, 1 << 60)
        for records in groups
    ]
    topics.snapshots = SnapshotSettings.of([], runs)
    judged: list[TargetAuditRow] = []
    for records in groups:
        given = [each.value for each in records if each.type == STREAMS_TARGET and each.value]
        value = max(given, key=lambda fields: len(str(fields["activeTasks"])))
        changed = [
            each._replace(value=value) if is_doubled and each.type == STREAMS_TARGET and each.value else each
            for each in records
        ]
        judged += audit_group(changed, Group(records[0].group_id, from_start=True), topics, None, EVERYTHING)
    judged = [row for row in judged if row.group_type == "STREAMS" and row.basis is not Basis.LEADER]
    assert judged
    assert {row.assignor for row in judged} == {"balanced"}
    found = {row.verdict for row in judged if row.basis is Basis.INVARIANTS}
    assert found == ({Verdict.SOUND, Verdict.INVALID} if is_doubled else {Verdict.SOUND})


def _choosing(record: CoordinatorRecord, assignor: str) -> CoordinatorRecord:
    if record.type != RecordType.CONSUMER_GROUP_MEMBER_METADATA or record.value is None:
        return record
    return record._replace(value={**record.value, "serverAssignor": assignor})


def test_no_log_tells_which_assignor_is_the_brokers_default() -> None:
    """Told that it is range, the audit does not blame brokers whose default is uniform."""
    rows = [
        row
        for records in sample()[0].values()
        if not any((record.value or {}).get("serverAssignor") for record in records)
        for row in audited(records, settings=AuditSettings("range"))
        if row.group_type is GroupType.CONSUMER and row.basis is Basis.ASSIGNOR
    ]
    assert {row.verdict for row in rows} == {Verdict.IDENTICAL, Verdict.UNKNOWN}
    unknown = [row.missing or "" for row in rows if row.verdict is Verdict.UNKNOWN]
    assert all("no member chose one, and 'uniform' gives the recorded target" in missing for missing in unknown)


def test_a_release_that_no_profile_describes_is_refused() -> None:
    with pytest.raises(InputError, match="no profile 'kafka-9'"):
        AuditSettings(profile="kafka-9")


def _targets_of(auditor: TargetAuditor) -> dict[str, dict[str, list[int]]]:
    view = auditor.memory.view
    targets = {} if view is None else view.view.targets
    return {
        member: {name: list(each) for name, each in (work.active if isinstance(work, Tasks) else work).items()}
        for member, work in targets.items()
    }


def test_without_times_the_topics_of_a_target_are_unknown_for_that_reason() -> None:
    """No metadata log that could be supplied would help."""
    records = next(records for group, records in sample()[0].items() if "consumer" in group)
    missing = {row.missing for row in audited(without_times(records)) if row.basis == Basis.ASSIGNOR}
    assert missing == {"topics of that time: records without times do not say which of their versions was used"}


def test_a_target_for_an_earlier_epoch_is_that_of_the_group_as_it_was_then() -> None:
    """KIP-1263: brokers after Kafka 4.4 compute it beside the heartbeats, while a third member joins."""
    log = GroupLog()
    records = at_once(log.join("m1", 2, {"t": [0]}))
    for name, epoch in (("m2", 3), ("m3", 4)):
        records += at_once([log.member(name), log.epoch(epoch), log.current(name, 2, {}, previousMemberEpoch=0)])
    row = audited([*records, *at_once([log.target("m2", {}), log.target("m3", {}), log.target_epoch(3)])])[-1]
    assert (row.epoch, row.verdict, row.missing) == (3, Verdict.UNKNOWN, EARLIER_GROUP.format(3))

"""Verdicts on compacted logs: what was removed is not compared with, and nothing is not identical to nothing."""

from collections import Counter

import pytest

from coordinator_core.audit.rows import Basis, TargetAuditRow, Verdict
from coordinator_core.cluster.image import Topic
from coordinator_core.groups.group import Group
from coordinator_core.history.coverage import Coverage
from coordinator_core.records import CoordinatorRecord, RecordType
from tests.core.audit.targets.verdicts import audit_group
from tests.core.cluster.test_metadata_log import hash_of
from tests.core.compacted import compacted
from tests.core.history.logs import (
    GROUP,
    A,
    GroupLog,
    classic,
    epoch,
    existing,
    generation,
    gone,
    member,
    target,
    target_epoch,
)
from tests.core.recorded import EVERYTHING, sample

TARGETS = frozenset(
    (
        RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER,
        RecordType.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER,
        RecordType.STREAMS_GROUP_TARGET_ASSIGNMENT_MEMBER,
    )
)
OF_T = hash_of(Topic("t", A, 4))


def audited(records: list[CoordinatorRecord], coverage: Coverage) -> list[TargetAuditRow]:
    group = Group(records[0].group_id if records else "gone", from_start=True)
    return list(audit_group(records, group, sample()[1], None, coverage))


def targets_of(row: TargetAuditRow, records: list[CoordinatorRecord]) -> list[int]:
    """The offsets of the target records of a row's operation."""
    return [
        each.at.offset
        for each in records
        if each.type in TARGETS and row.opened.offset <= each.at.offset <= row.at.offset
    ]


@pytest.mark.parametrize("tombstones", [True, False])
def test_a_verdict_on_a_compacted_log_is_that_of_the_whole_one_or_unknown(tombstones: bool) -> None:
    """What compaction removed of a target is never passed over, and no verdict is worse than the truth."""
    seen: Counter[str] = Counter()
    for records in sample()[0].values():
        truth = {row.at: row for row in audited(records, EVERYTHING)}
        for until in {row.at.offset + behind for row in truth.values() for behind in (1, 40)}:
            left, coverage = compacted(records, until, tombstones=tombstones)
            for row in audited(left, coverage):
                assert row.verdict in (Verdict.UNKNOWN, truth[row.at].verdict)
                if row.verdict is Verdict.IDENTICAL and row.basis is Basis.ASSIGNOR:
                    assert targets_of(row, left) == targets_of(truth[row.at], records)
                    assert (row.expected, row.recorded) in (
                        (None, None),
                        (truth[row.at].expected, truth[row.at].recorded),
                    )
                seen[row.verdict] += 1
    assert seen[Verdict.IDENTICAL] > 1_000
    assert seen[Verdict.UNKNOWN] > 50


def test_an_unknown_verdict_states_no_figure_and_says_what_is_missing() -> None:
    for records in sample()[0].values():
        left, coverage = compacted(records, records[-1].at.offset + 1, tombstones=False)
        for row in audited(left, coverage):
            if row.verdict is Verdict.UNKNOWN and row.basis is Basis.ASSIGNOR:
                assert row.missing is not None
                assert "the log was compacted or cut" in row.missing
                assert (row.expected, row.recorded, row.difference_count, row.members) == (None, None, None, None)
                assert row.differences == ()


@pytest.mark.parametrize("is_seen", [True, False], ids=["classic group seen", "classic group lost"])
@pytest.mark.parametrize("replaced", [True, False], ids=["static member replaced", "member joined"])
def test_epoch_2_behind_lost_records_may_be_the_second_one_of_a_converted_group(is_seen: bool, replaced: bool) -> None:
    """Its other members are those of the classic group; what the log lacks is no invalid target."""
    log = GroupLog()
    if is_seen:
        log.write(generation(1, {"m1": classic({"t": [0, 1]}), "s1": classic({"t": [2, 3]}, instance="i")}))
    log.skip(100 - log.offset)
    tombstones = gone("s1") if replaced else ()
    log.write(*tombstones, member("s2", "t"), epoch(2, OF_T), target("m1", 0, 1), target("s2", 2, 3), target_epoch(2))
    log.write(member("s2", "t", instance="i"), epoch(3, OF_T), target("s2", 2, 3), target_epoch(3))
    end = log.records[-1].at.offset
    coverage = Coverage({0: [(0, 1), (100, end)] if is_seen else [(100, end)]})
    rows = list(audit_group(log.records, Group(GROUP), existing(t=4), None, coverage))
    assert [row.verdict for row in rows if row.group_type == "CONSUMER"] == [Verdict.UNKNOWN] * 2


@pytest.mark.parametrize(("lost", "verdict"), [((), Verdict.IDENTICAL), ((1,), Verdict.UNKNOWN)])
def test_what_a_conversion_copied_may_be_of_a_generation_that_is_lost(lost: tuple[int, ...], verdict: Verdict) -> None:
    """Its first epoch has the number of the last generation: 2 is not the first epoch of a new group."""
    log = GroupLog()
    log.write(generation(1, {"m1": classic({"t": [0, 1, 2, 3]})}))
    log.write(generation(2, {"m1": classic({"t": [0, 1]}), "m2": classic({"t": [2, 3]})}))
    classic_client = {"sessionTimeoutMs": 45000, "supportedProtocols": []}
    log.write(
        (RecordType.GROUP_METADATA, {"group": GROUP}, None),
        *(member(name, "t", classicMemberMetadata=classic_client) for name in ("m1", "m2")),
        epoch(2, OF_T),
        target("m1", 0, 1),
        target("m2", 2, 3),
        target_epoch(2),
    )
    records = [record for record in log.records if record.at.offset not in lost]
    coverage = Coverage({0: [(record.at.offset, record.at.offset) for record in records]})
    rows = list(audit_group(records, Group(GROUP), existing(t=4), None, coverage))
    assert [(row.verdict, row.epoch) for row in rows if row.basis is Basis.UPGRADE] == [(verdict, 2)]

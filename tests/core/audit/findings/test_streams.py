"""Warm-up tasks that never take over and topology updates left half done, from hand-made logs (KIP-1071)."""

from __future__ import annotations

from dataclasses import replace

from coordinator_core.audit.finding_rows import FindingRow
from coordinator_core.audit.findings.all_findings import findings
from coordinator_core.audit.folds.group_history import GroupHistory
from tests.core.audit.findings.test_unassigned import IN, LIMITS, epoch, gathered, running, target, topics
from tests.core.audit.histories import at
from tests.core.audit.histories import epoch as epoch_row
from tests.core.history.logs import GroupLog
from tests.core.history.test_other_types import TOPOLOGY, streams, streams_current, streams_member
from tests.core.known_topics import at_end

KINDS = ("warmup_stuck", "topology_half_updated")


def found(log: GroupLog, now_ms: int) -> list[FindingRow]:
    history = gathered(log, topics((0, IN)), now_ms, {"in": 3})
    return [row for row in findings(history, LIMITS) if row.kind in KINDS]


def warming_up() -> GroupLog:
    return running(GroupLog()).write(
        streams("MEMBER_METADATA", streams_member(processId="q"), "n"),
        epoch(3, IN),
        target(3),
        streams("CURRENT_MEMBER_ASSIGNMENT", streams_current(3, warmup=[1, 2]), "n"),
    )


def test_a_warm_up_that_does_not_end_is_found() -> None:
    log = warming_up()
    began = log.time_ms
    assert found(log, began + LIMITS.warmup_ms - 1) == []
    (row,) = found(log, began + LIMITS.warmup_ms)
    assert (row.kind, row.subject, row.value) == ("warmup_stuck", "n", LIMITS.warmup_ms)
    assert "2 tasks of member n warm up" in row.detail
    assert "0_1, 0_2" in row.detail
    assert len(row.evidence) == 1


def test_a_warm_up_that_took_over_is_none() -> None:
    log = warming_up().write(
        epoch(4, IN),
        target(4),
        streams("CURRENT_MEMBER_ASSIGNMENT", streams_current(4, active=[0]), "m"),
        streams("CURRENT_MEMBER_ASSIGNMENT", streams_current(4, active=[1, 2]), "n"),
    )
    assert found(log, log.time_ms + 10 * LIMITS.warmup_ms) == []


def test_members_with_an_older_topology_are_counted() -> None:
    newer = {**TOPOLOGY, "epoch": 1}
    log = running(GroupLog()).write(
        streams("MEMBER_METADATA", streams_member(topologyEpoch=1), "n"), streams("TOPOLOGY", newer), epoch(3, IN)
    )
    (row,) = found(log, log.time_ms)
    assert (row.kind, row.value) == ("topology_half_updated", 1)
    assert "1 of 2 members still have an older topology than epoch 1" in row.detail
    done = log.write(streams("MEMBER_METADATA", streams_member(topologyEpoch=1), "m"))
    assert found(done, done.time_ms) == []


def test_internal_topics_of_a_deleted_application_are_named() -> None:
    deleted = epoch_row(2, at(1), group_type="STREAMS", ended=at(5), ended_by="group deleted", is_open=False)
    left = dict.fromkeys(["g-a-repartition", *(f"g-store{n}-changelog" for n in range(6))], 3)
    others = {"g-output": 3, "other-store-changelog": 3, "gg-store-changelog": 3}
    gone = GroupHistory("g", 9_000, epochs=[deleted], topics=at_end(left | others))
    (row,) = findings(gone, LIMITS)
    assert (row.kind, row.value, row.evidence, row.until_ms) == ("internal_topics_left", 7, (at(5),), 9_000)
    assert row.detail.endswith(
        "g-a-repartition, g-store0-changelog, g-store1-changelog, g-store2-changelog, g-store3-changelog and 2 more"
    )
    again = replace(gone, epochs=[deleted, epoch_row(2, at(7), group_type="STREAMS")])
    assert findings(again, LIMITS) == []
    assert findings(replace(gone, topics=at_end(others)), LIMITS) == []

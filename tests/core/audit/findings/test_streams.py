"""Warm-up tasks that never take over and topology updates left half done, from hand-made logs (KIP-1071)."""

from dataclasses import replace

import pytest

from coordinator_core.audit.finding_rows import FindingRow
from coordinator_core.audit.findings.all_findings import findings
from coordinator_core.groups.classic.protocols import STREAMS_PROTOCOL
from coordinator_core.records import RecordType
from tests.core.audit.findings.test_unassigned import IN, LIMITS, epoch, gathered, running, target, topics
from tests.core.history.logs import GROUP, GroupLog, classic, generation
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
    assert "2 tasks of member n have warmed up" in row.detail
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
    limit = LIMITS.topology_update_ms
    assert found(log, log.time_ms + limit - 1) == [], "a new version is rolled out"
    (row,) = found(log, log.time_ms + limit)
    assert (row.kind, row.value, row.is_open) == ("topology_half_updated", limit, True)
    assert "1 of 2 members still have an older topology than epoch 1" in row.detail
    done = log.write(streams("MEMBER_METADATA", streams_member(topologyEpoch=1), "m"))
    assert found(done, done.time_ms + limit) == []


def test_internal_topics_of_a_deleted_application_are_named() -> None:
    log = running(GroupLog()).write(
        *(
            streams(kind, None, "m")
            for kind in ("CURRENT_MEMBER_ASSIGNMENT", "TARGET_ASSIGNMENT_MEMBER", "MEMBER_METADATA")
        ),
        *(streams(kind, None) for kind in ("TARGET_ASSIGNMENT_METADATA", "TOPOLOGY", "METADATA")),
    )
    left = dict.fromkeys(["g-a-repartition", *(f"g-store{n}-changelog" for n in range(6))], 3)
    others = {"g-output": 3, "other-store-changelog": 3, "gg-store-changelog": 3}
    gone = gathered(log, topics((0, IN)), 9_000, left | others)
    (row,) = findings(gone, LIMITS)
    assert (row.kind, row.value, row.threshold, row.until_ms) == ("internal_topics_left", 7, 1, 9_000)
    assert row.evidence == (log.records[-1].at,)
    assert row.detail.endswith(
        "g-a-repartition, g-store0-changelog, g-store1-changelog, g-store2-changelog, g-store3-changelog and 2 more"
    )
    assert findings(replace(gone, topics=at_end(others)), LIMITS) == []
    again = gathered(running(log), topics((0, IN)), 9_000, left | others)
    assert "internal_topics_left" not in {row.kind for row in findings(again, LIMITS)}


@pytest.mark.parametrize(("protocol", "is_left"), [(STREAMS_PROTOCOL, True), ("range", False)])
def test_a_deleted_classic_application_leaves_internal_topics_if_it_was_one_of_streams(
    protocol: str, is_left: bool
) -> None:
    log = GroupLog().write(generation(1, {"m": classic({})}, protocol), generation(2, {}, None))
    there = {f"{GROUP}-store-changelog": 3}
    assert findings(gathered(log, None, 9_000, there), LIMITS) == []
    gone = log.write((RecordType.GROUP_METADATA, {"group": GROUP}, None))
    found = [row.kind for row in findings(gathered(gone, None, 9_000, there), LIMITS)]
    assert found == ["internal_topics_left"] * is_left

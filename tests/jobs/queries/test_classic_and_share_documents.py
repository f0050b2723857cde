"""The documents of classic groups and of share groups through the pipeline, with the documents' own values.

Client-side assignment is the document of classic groups, KIP-932 that of share groups. The coordinator model writes
each transcript; the log files are read, replayed, described, judged and explained.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coordinator_core.audit.finding_rows import FindingKind
from coordinator_core.audit.rows import Verdict
from coordinator_core.coordinator.config import BrokerConfig
from coordinator_core.coordinator.share.delivery_types import (
    Acknowledge,
    Acknowledgement,
    DeliverySettings,
    LogBatch,
    StateWrite,
)
from coordinator_core.coordinator.share.leader import SharePartitionLeader
from coordinator_core.coordinator.share.share_coordinator import ShareCoordinator
from coordinator_core.groups.share.state_log import SharePartition
from coordinator_core.records import Family
from jobs.api import CoordinatorAudit
from jobs.queries.from_tables.answers import StoredAnswers
from jobs.relations.moment import AsOf
from jobs.tables.folder_reader import FolderReader
from tests.core.audit.transcribed import TRANSCRIPTS
from tests.core.coordinator.transcript import GROUP
from tests.core.coordinator.transcript_consumers import partitions
from tests.jobs.logs import batch, write_segment
from tests.jobs.queries.played_logs import PlayedLogs, only_share_state_missing
from tests.jobs.queries.same_answers import descriptions

FULL = "classic_full_group"
"""Its leaders give what no assignor would: it is about who may join."""

FOUND = (path.stem for pattern in ("classic_*.txt", "share_*.txt") for path in TRANSCRIPTS.glob(pattern))
NAMES = sorted(name for name in FOUND if name != FULL)
ROLLING_UPGRADE = "classic_rolling_upgrade"
DESCRIBED = ["classic_changes", "classic_coordinator_failures", "classic_rebalance", "share_group"]
"""Those that describe the group in between."""


@pytest.fixture
def played(tmp_path: Path) -> Callable[[str], PlayedLogs]:
    """A transcript, played to its end."""
    return PlayedLogs(tmp_path).through


# --- every transcript ------------------------------------------------------------------------------------------------


def as_in_the_transcript(described: dict[str, Any], name_of: Callable[[str], str]) -> list[str]:
    """The group as the ``describe`` of transcripts writes it."""
    kind = described["listing"]["type"].lower()
    group = described[f"describe_{kind}"]
    lines = [f"{kind} group, {described['listing']['groupState'].capitalize()}"]
    if kind == "share":
        lines.append(f"epoch {group['groupEpoch']}, target of epoch {group['targetAssignmentEpoch']} by simple")
    for member in sorted(group["members"], key=lambda each: name_of(each["consumerId"])):
        named = defaultdict(list)
        for partition in member["assignment"]["topicPartitions"]:
            topic, _, number = partition.rpartition("-")
            named[topic].append(int(number))
        at_epoch = f" at epoch {member['memberEpoch']}: shares in" if kind == "share" else ":"
        lines.append(f"member {name_of(member['consumerId'])}{at_epoch} {partitions(named.items())}")
    return lines


@pytest.mark.parametrize("name", DESCRIBED)
def test_each_settled_state_is_described_from_the_log(name: str, tmp_path: Path) -> None:
    """A classic group that rebalances is so in memory only: the log has its last completed rebalance."""
    logs, states = PlayedLogs(tmp_path), 0
    for command, said in logs.steps(name):
        if command == "describe":
            described = as_in_the_transcript(logs.described(), logs.play._named)
            if said[0].endswith("PreparingRebalance"):
                assert described[0] == "classic group, Stable"
                continue
            assert described == said
            states += 1
    assert states


@pytest.mark.parametrize("name", NAMES)
def test_no_example_is_called_wrong(name: str, played: Callable[[str], PlayedLogs]) -> None:
    answers = played(name).answers()
    assert list(answers.violations(None, 0)) == []
    verdicts = list(answers.verdicts(None, 0))
    assert verdicts
    expected = Verdict.SOUND if name == ROLLING_UPGRADE else Verdict.IDENTICAL
    assert {row.verdict for row in verdicts} == {expected}


# --- client-side assignment ------------------------------------------------------------------------------------------


def causes(logs: PlayedLogs) -> dict[int, list[tuple[str, str | None]]]:
    """By epoch: each cause with the member that it names, or else its detail."""
    named = logs.play._named
    return {
        row.to_epoch: [(each.kind, named(each.member_id) if each.member_id else each.detail) for each in row.causes]
        for row in logs.history().rebalances
    }


def test_rolling_upgrade_phases_1_to_4(played: Callable[[str], PlayedLogs]) -> None:
    """(round-robin, 0) until C, the last of A, B and C, is upgraded; then (round-robin, 1)."""
    logs = played(ROLLING_UPGRADE)
    epochs = [(row.epoch, row.assignor, list(map(logs.play._named, row.members))) for row in logs.history().epochs]
    assert epochs[1:] == [
        *((number, "round-robin-0", ["a", "b", "c"]) for number in (1, 2, 3, 4)),
        (5, "round-robin-1", ["a", "b", "c"]),
    ]
    assert causes(logs)[5] == [("protocol_changed", "round-robin-0 to round-robin-1")]
    # The log has a member's metadata for the chosen protocol only: not that A and B can do more.
    assert causes(logs)[3] == causes(logs)[4] == [("unknown", "the log does not show a cause")]
    story = logs.story(5)
    assert "Cause: the group's protocol changed (round-robin-0 to round-robin-1)." in story
    assert any("the assignment breaks no rule that holds for every assignor" in sentence for sentence in story)


def test_coordinator_failures_before_the_state_is_persisted(played: Callable[[str], PlayedLogs]) -> None:
    """1 to 3: what the failed coordinators had in memory is not in the log; 4: the assignment outlives the last one."""
    logs = played("classic_coordinator_failures")
    assert [(row.epoch, row.state) for row in logs.history().epochs] == [(0, "EMPTY"), (1, "STABLE")]
    assert causes(logs) == {1: [("member_joined", "b"), ("member_joined", "a")]}


def test_leader_and_member_failures(played: Callable[[str], PlayedLogs]) -> None:
    logs = played("classic_failures")
    assert causes(logs) == {
        2: [("member_joined", "b"), ("member_joined", "a")],
        3: [("member_left_or_expired", "b")],
        4: [("member_left_or_expired", "a"), ("member_joined", "c")],
        5: [("member_joined", "d")],
        6: [("member_left_or_expired", "d")],
        7: [("member_left_or_expired", "c")],
    }
    leaders = {row.epoch: row.leader and logs.play._named(row.leader) for row in logs.history().epochs}
    assert leaders == {0: None, 2: "a", 3: "a", 4: "c", 5: "c", 6: "c", 7: None}
    assert "Cause: member a (a at 127.0.0.1) left, or its session expired." in logs.story(4)


def test_subscription_change_metadata_change_and_assignment_failure(played: Callable[[str], PlayedLogs]) -> None:
    logs = played("classic_changes")
    found = causes(logs)
    assert found[3] == [("subscription_changed", "b")]
    assert found[4] == [("topic_grown", "4 to 6 partitions")]
    assert found[5] == [("member_left_or_expired", "a")]
    assert "Cause: member b (b at 127.0.0.1) changed its subscription (+audit)." in logs.story(3)
    assert "Cause: topic orders got more partitions (4 to 6 partitions)." in logs.story(4)
    assert "Member b (b at 127.0.0.1) got orders 0,1,2." in logs.story(5)


def test_a_static_member_that_restarts_causes_no_rebalance(played: Callable[[str], PlayedLogs]) -> None:
    logs = played("classic_static")
    assert causes(logs) == {1: [("member_joined", "a")], 2: [("member_joined", "b")]}
    assert logs.history().rebalances[-1].to_epoch == 2


# --- KIP-932 ---------------------------------------------------------------------------------------------------------


def test_share_groups_members_and_partitions(played: Callable[[str], PlayedLogs]) -> None:
    """Heartbeats join, leave and keep members; a partition is shared once it is initialised, by several members."""
    logs = played("share_group")
    (first, *_) = [row for row in logs.history().epochs if row.epoch == 2]
    found = {row.to_epoch: row for row in logs.history().rebalances if row.at.offset > first.opened.offset}
    assert {epoch: [each.kind for each in row.causes] for epoch, row in found.items() if epoch != 2} == {
        3: ["share_state_initialized"],
        4: ["member_joined"],
        5: ["member_joined"],
        6: ["topic_grown"],
        7: ["share_state_initialized"],
        8: ["member_left_or_expired"],
        9: ["member_left_or_expired"],
        10: ["member_left_or_expired"],
    }
    assert "Cause: share partitions of orders became assignable." in logs.story(3)
    assert "Member c (c at 127.0.0.1) got orders 1." in logs.story(5)
    asked = {(row.partition, row.asked) for row in logs.history().initializations if row.phase == "initializing"}
    assert (2, 2) in asked


class Deliveries:
    """ShareFetch and ShareAcknowledge of orders-0: its leader, and the share coordinator that writes its state."""

    def __init__(self, topic_id: str, now: int) -> None:
        self.now = now
        self.coordinator = ShareCoordinator(BrokerConfig(), 0)
        self.which = SharePartition(GROUP, topic_id, 0)
        self.records = [self.coordinator.initialize(self.which, 2, -1, now)]
        state, record = self.coordinator.read(self.which, 0, now)
        self.records += [] if record is None else [record]
        settings = DeliverySettings(lock_ms=30_000, delivery_limit=3)
        self.leader = SharePartitionLeader(settings, self._write, max(state.start_offset, 0), state.batches)

    def _write(self, write: StateWrite) -> None:
        self.records.append(self.coordinator.write(self.which, 2, 0, write, self.now))

    def fetch(self, member: str, last: int) -> list[tuple[int, int, int]]:
        """AcquiredRecords of the response: BaseOffset, LastOffset, DeliveryCount."""
        self.now += 1_000
        first = self.leader.next_fetch_offset
        got = self.leader.acquire(
            member, first, [LogBatch(first, last)], self.now, most_records=last - first + 1, batch_size=500
        )
        return [tuple(each) for each in got]

    def acknowledge(self, member: str, *batches: tuple[int, int, Acknowledge]) -> None:
        """AcknowledgementBatches of the request: StartOffset, LastOffset, AcknowledgeType."""
        self.now += 1_000
        self.leader.acknowledge(
            member, [Acknowledgement(first, last, (kind,)) for first, last, kind in batches], self.now
        )


def test_share_fetch_and_acknowledge(tmp_path: Path) -> None:
    """Accept, release, reject, a gap, a lock that ends, and the last delivery: each is what the log says it was."""
    logs = PlayedLogs(tmp_path)
    for command in (
        "config group.share.assignment.interval.ms=0",
        "topics orders=1 __share_group_state=1",
        "share a join topics=orders",
        "share a beat",
        "share b join topics=orders",
    ):
        list(logs.play.command(command))
    made = Deliveries(logs.play.topics.by_name["orders"].id, logs.play.now)
    assert made.fetch("a", 9) == [(0, 9, 1)]
    kinds = (0, 4, Acknowledge.ACCEPT), (5, 7, Acknowledge.RELEASE), (8, 8, Acknowledge.GAP), (9, 9, Acknowledge.REJECT)
    made.acknowledge("a", *kinds)
    assert made.fetch("b", 9) == [(5, 7, 2)]
    made.now += 30_000
    made.leader.expire(made.now)
    assert made.fetch("a", 9) == [(5, 5, 3)]
    made.acknowledge("a", (5, 5, Acknowledge.RELEASE))
    write_segment(tmp_path / "__share_group_state-0", [batch(each, family=Family.SHARE) for each in made.records])

    history = logs.history()
    _, acknowledged, *timed_out, given_up = history.share_partitions
    told = [(row.write, row.start_offset, row.accepted_now) for row in (acknowledged, given_up)]
    assert told == [("delivery", 0, 5), ("delivery", 5, 0)]
    assert [tuple(each) for each in acknowledged.released_now] == [(5, 7, 1)]
    assert [tuple(each) for each in acknowledged.archived_now] == [(8, 9, 1)]
    # Each lock of a batch whose offsets have their own states ends on its own.
    ended = [tuple(each) for row in timed_out for each in row.released_now]
    assert ended == [(5, 5, 2), (6, 6, 2), (7, 7, 2)]
    assert [tuple(each) for each in given_up.archived_now] == [(5, 5, 3)]
    (orders,) = logs.described()["share_partitions"]
    assert {name: orders[name] for name in ("topic", "partition", "startOffset", "nextOffset", "available")} == {
        "topic": "orders",
        "partition": 0,
        "startOffset": 5,
        "nextOffset": 6,
        "available": 2,
    }
    (found,) = (row for row in logs.answers().findings(GROUP) if row.kind == FindingKind.SHARE_ARCHIVED)
    assert found.detail.startswith("1 record of orders given up: orders-0 5 after 3 deliveries; 2 offsets archived at ")


# --- from tables -----------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("name", [ROLLING_UPGRADE, "share_group"])
def test_the_tables_answer_as_the_logs_do(
    name: str, played: Callable[[str], PlayedLogs], spark: Any, tmp_path_factory: pytest.TempPathFactory
) -> None:
    logs = played(name)
    from_logs = logs.answers()
    audit = CoordinatorAudit(spark, str(tmp_path_factory.mktemp("tables")), "documents")
    audit.ingest(str(logs.folder))
    audit.decode()
    audit.replay()
    audit.audit()
    tables = StoredAnswers(
        FolderReader(audit.tables.location), audit.cluster, audit.settings.audit, only_share_state_missing
    )
    expected = from_logs.history(GROUP)
    assert expected is not None
    assert tables.history(GROUP) == replace(expected, commits=[], transactions=[], sizes=[])
    assert list(tables.verdicts(GROUP, 0)) == list(from_logs.verdicts(GROUP, 0))
    assert tables.findings(GROUP) == from_logs.findings(GROUP)
    assert descriptions(tables.at(AsOf())) == descriptions(from_logs.at(AsOf()))

"""History of share and streams groups, from hand-built logs."""

import pytest

from coordinator_core.history.coverage import Coverage
from coordinator_core.history.rows import GroupEpochRow, MembershipRow, ShareInitializationRow
from coordinator_core.records import Fields, RecordType
from tests.core.cluster.test_metadata_log import Log, supporting
from tests.core.history.logs import (
    A,
    B,
    Change,
    GroupLog,
    alone,
    classic,
    current,
    epoch,
    existing,
    generation,
    kinds,
    member,
    target,
    target_epoch,
    without_times,
)

CLIENT = {"clientId": "c", "clientHost": "/127.0.0.1", "rackId": None}


def share(kind: str, value: Fields | None, member: str | None = None):
    key = {} if member is None else {"memberId": member}
    return RecordType[f"SHARE_GROUP_{kind}"], key, value


def streams(kind: str, value: Fields | None, member: str | None = None):
    key = {} if member is None else {"memberId": member}
    return RecordType[f"STREAMS_GROUP_{kind}"], key, value


def test_share_partitions_have_many_owners_and_become_assignable_later():
    initialized = {"topicId": A, "topicName": "t", "partitions": [0, 1]}
    log = GroupLog().write(
        share("MEMBER_METADATA", {**CLIENT, "subscribedTopicNames": ["t"]}, "m"),
        share("METADATA", {"epoch": 2, "metadataHash": 7}),
        share("TARGET_ASSIGNMENT_METADATA", {"assignmentEpoch": 2}),
        share("CURRENT_MEMBER_ASSIGNMENT", share_current(2, []), "m"),
    )
    states = {"initializingTopics": [], "initializedTopics": [initialized], "deletingTopics": []}
    log.write(share("STATE_PARTITION_METADATA", states))
    log.write(
        share("METADATA", {"epoch": 3, "metadataHash": 7}),
        share("TARGET_ASSIGNMENT_METADATA", {"assignmentEpoch": 3}),
        share("CURRENT_MEMBER_ASSIGNMENT", share_current(3, [{"topicId": A, "partitions": [0, 1]}]), "m"),
    )
    _, second = log.rebalances()
    assert (kinds(second), second.group_type, second.outcome) == (["share_state_initialized"], "SHARE", "converged")
    assert second.units_moved is None
    assert {(row.topic, row.partition) for row in log.assignments()} == {("t", 0), ("t", 1)}


def test_a_share_group_with_members_is_stable_whatever_its_target():
    """It has no other state with members (KIP-932), and ``describe`` says so, too."""
    log = GroupLog().write(*SHARED)
    assert [row.state for row in log.epochs()] == ["STABLE"]
    log.write(
        share("TARGET_ASSIGNMENT_METADATA", {"assignmentEpoch": 6}),
        share("CURRENT_MEMBER_ASSIGNMENT", share_current(5, []), "s1"),
    )
    assert [row.state for row in log.epochs()] == ["STABLE"]


def test_share_partitions_that_a_member_leaves_behind_open_one_more_epoch():
    """Brokers of 4.1 do that; the record of the epoch has nothing else to show for it."""
    initialized = [{"topicId": A, "topicName": "t", "partitions": [0, 1]}]
    states = {"initializingTopics": [], "initializedTopics": initialized, "deletingTopics": []}
    log = GroupLog().write(share("STATE_PARTITION_METADATA", states))
    log.write(
        *(share("MEMBER_METADATA", {**CLIENT, "subscribedTopicNames": ["t"]}, member) for member in ("m", "n")),
        share("METADATA", {"epoch": 2, "metadataHash": 7}),
        *(
            share("TARGET_ASSIGNMENT_MEMBER", {"topicPartitions": [{"topicId": A, "partitions": [number]}]}, member)
            for number, member in enumerate("mn")
        ),
        share("TARGET_ASSIGNMENT_METADATA", {"assignmentEpoch": 2}),
    )
    gone = [share(kind, None, "n") for kind in ("TARGET_ASSIGNMENT_MEMBER", "MEMBER_METADATA")]
    log.write(*gone, share("METADATA", {"epoch": 3, "metadataHash": 7}))
    log.write(share("METADATA", {"epoch": 4, "metadataHash": 7}))
    _, left, again = log.rebalances()
    assert kinds(left) == ["member_left_or_expired"]
    assert [(each.kind, each.topics) for each in again.causes] == [("share_state_initialized", ("t",))]


def test_brokers_of_4_1_open_an_epoch_when_the_state_of_a_deleted_topic_is_gone() -> None:
    """Its hash is still that of the topic: the coordinator looks at the topics again later."""
    topic = {"topicId": A, "topicName": "t", "partitions": [0]}
    states = {"initializingTopics": [], "initializedTopics": [topic], "deletingTopics": []}
    log = GroupLog().write(share("STATE_PARTITION_METADATA", states))
    log.write(
        share("MEMBER_METADATA", {**CLIENT, "subscribedTopicNames": ["t"]}, "m"),
        share("METADATA", {"epoch": 2, "metadataHash": 7}),
        share("TARGET_ASSIGNMENT_MEMBER", {"topicPartitions": [{"topicId": A, "partitions": [0]}]}, "m"),
        share("TARGET_ASSIGNMENT_METADATA", {"assignmentEpoch": 2}),
    )
    log.write(share("STATE_PARTITION_METADATA", {**states, "initializedTopics": []}))
    log.write(share("METADATA", {"epoch": 3, "metadataHash": 7}))
    (found,) = log.rebalances(topics=Log().batch(supporting(1, 28)).history())[-1].causes
    assert (found.kind, found.topics) == ("topic_deleted", ("t",))
    assert kinds(log.rebalances(topics=Log().batch(supporting(1, 30)).history())[-1]) == ["unknown"]


def test_brokers_of_4_1_open_epochs_for_share_partitions_that_no_member_wants_any_more():
    initialized = [{"topicId": A, "topicName": "t", "partitions": [0]}]
    states = {"initializingTopics": [], "initializedTopics": initialized, "deletingTopics": []}
    log = GroupLog().write(share("STATE_PARTITION_METADATA", states))
    log.write(
        share("MEMBER_METADATA", {**CLIENT, "subscribedTopicNames": ["other"]}, "m"),
        share("METADATA", {"epoch": 2, "metadataHash": 7}),
        share("TARGET_ASSIGNMENT_METADATA", {"assignmentEpoch": 2}),
    )
    log.write(share("METADATA", {"epoch": 3, "metadataHash": 7}))
    (found,) = log.rebalances(topics=Log().batch(supporting(1, 28)).history())[-1].causes
    assert (found.kind, found.topics) == ("share_state_initialized", ("t",))
    assert found.detail is not None
    assert "no member subscribes to them" in found.detail
    assert kinds(log.rebalances(topics=Log().batch(supporting(1, 30)).history())[-1]) == ["unknown"]


def share_current(epoch: int, partitions: list[Fields]) -> Fields:
    return {"memberEpoch": epoch, "previousMemberEpoch": epoch - 1, "state": 0, "assignedPartitions": partitions}


def streams_member(**changed: object) -> Fields:
    fields = {"instanceId": None, "rebalanceTimeoutMs": 1000, "topologyEpoch": 0, "processId": "p"}
    return {**CLIENT, **fields, "userEndpoint": None, "clientTags": [], **changed}


def _streams_epoch(epoch: int, standbys: str, validated: int = 0) -> Fields:
    configs = [{"key": "num.standby.replicas", "value": standbys}]
    return {"epoch": epoch, "metadataHash": 7, "validatedTopologyEpoch": validated, "lastAssignmentConfigs": configs}


def streams_current(epoch: int, state: int = 1, revoking: tuple[int, ...] = (), **tasks: list[int]) -> Fields:
    def of(role: str) -> list[Fields]:
        return [{"subtopologyId": "0", "partitions": tasks[role]}] if tasks.get(role) else []

    pending = [{"subtopologyId": "0", "partitions": list(revoking)}] if revoking else []
    return {
        "memberEpoch": epoch,
        "previousMemberEpoch": epoch - 1,
        "state": state,
        "activeTasks": of("active"),
        "standbyTasks": of("standby"),
        "warmupTasks": of("warmup"),
        "activeTasksPendingRevocation": pending,
        "standbyTasksPendingRevocation": [],
        "warmupTasksPendingRevocation": [],
    }


TOPOLOGY = {
    "epoch": 0,
    "subtopologies": [
        {
            "subtopologyId": "0",
            "sourceTopics": ["in"],
            "sourceTopicRegex": [],
            "stateChangelogTopics": [],
            "repartitionSinkTopics": [],
            "repartitionSourceTopics": [],
            "copartitionGroups": [],
        }
    ],
}


def test_streams_tasks_by_role_configs_and_members():
    log = GroupLog().write(
        streams("MEMBER_METADATA", streams_member(), "m"),
        streams("TOPOLOGY", TOPOLOGY),
        streams("METADATA", _streams_epoch(2, "1", validated=-1)),
        streams("TARGET_ASSIGNMENT_METADATA", {"assignmentEpoch": 2}),
        streams("CURRENT_MEMBER_ASSIGNMENT", streams_current(2, active=[0, 1], standby=[2]), "m"),
    )
    log.write(
        streams("METADATA", _streams_epoch(3, "0")), streams("TARGET_ASSIGNMENT_METADATA", {"assignmentEpoch": 3})
    )
    log.write(streams("CURRENT_MEMBER_ASSIGNMENT", streams_current(2, 2, revoking=(1,), active=[0]), "m"))
    log.write(streams("CURRENT_MEMBER_ASSIGNMENT", streams_current(3, active=[0]), "m"))
    log.write(
        streams("MEMBER_METADATA", streams_member(processId="q"), "m"), streams("METADATA", _streams_epoch(4, "0"))
    )
    first, second, third = log.rebalances()
    assert kinds(first) == ["member_joined"]
    assert (first.outcome, first.time_to_converge_ms, first.duration_min_ms) == ("not ready", None, 0)
    assert [(cause.kind, cause.detail) for cause in second.causes] == [
        ("group_config_changed", "num.standby.replicas 1 to 0")
    ]
    assert (second.outcome, second.units_lost, second.revocations[0].duration_ms) == ("converged", 1, 1000)
    assert [(cause.kind, cause.detail) for cause in third.causes] == [("member_changed", "process")]
    assert [row.state for row in log.epochs()] == ["NOT_READY", "STABLE", "ASSIGNING"]
    held = {(row.role, row.subtopology, row.partition, row.is_open) for row in log.assignments()}
    assert held == {("active", "0", 0, True), ("active", "0", 1, False), ("standby", "0", 2, False)}


@pytest.mark.parametrize(("last_seen_ms", "status"), [(100_000, "MISSING_SOURCE_TOPICS"), (2_000, None)])
def test_topics_behind_the_end_of_the_metadata_log_may_fit_a_topology(last_seen_ms: int, status: str | None) -> None:
    """The topic that the topology reads may have been created since."""
    log = GroupLog().write(
        streams("MEMBER_METADATA", streams_member(), "m"),
        streams("TOPOLOGY", TOPOLOGY),
        streams("METADATA", {"epoch": 2, "metadataHash": 7, "lastAssignmentConfigs": []}),
        after_ms=60_000,
    )
    topics = existing(other=1)
    topics.last_seen_ms = last_seen_ms
    assert [row.topology and row.topology.status for row in log.epochs(topics)] == [status]


def test_a_target_without_tasks_shows_that_a_topology_is_not_ready() -> None:
    """Brokers of 4.1 do not record which topology they validated, and the topics are not known."""
    target = {"activeTasks": [], "standbyTasks": [], "warmupTasks": []}
    log = GroupLog().write(
        streams("MEMBER_METADATA", streams_member(), "m"),
        streams("TOPOLOGY", TOPOLOGY),
        streams("METADATA", {"epoch": 1, "metadataHash": 7}),
        streams("TARGET_ASSIGNMENT_MEMBER", target, "m"),
        streams("TARGET_ASSIGNMENT_METADATA", {"assignmentEpoch": 1}),
        streams("CURRENT_MEMBER_ASSIGNMENT", streams_current(1), "m"),
    )
    tasks = [{"subtopologyId": "0", "partitions": [0]}]
    log.write(
        streams("METADATA", {"epoch": 2, "metadataHash": 8}),
        streams("TARGET_ASSIGNMENT_MEMBER", target | {"activeTasks": tasks}, "m"),
        streams("TARGET_ASSIGNMENT_METADATA", {"assignmentEpoch": 2}),
        streams("CURRENT_MEMBER_ASSIGNMENT", streams_current(2, active=[0]), "m"),
    )
    assert [row.outcome for row in log.rebalances()] == ["not ready", "converged"]
    assert [row.state for row in log.epochs()] == ["NOT_READY", "STABLE"]


def test_a_new_topology_is_a_cause():
    log = GroupLog().write(
        streams("MEMBER_METADATA", streams_member(), "m"),
        streams("TOPOLOGY", TOPOLOGY),
        streams("METADATA", _streams_epoch(2, "0")),
    )
    log.write(
        streams("MEMBER_METADATA", streams_member(topologyEpoch=1), "m"),
        streams("TOPOLOGY", {**TOPOLOGY, "epoch": 1}),
        streams("METADATA", _streams_epoch(3, "0", validated=1)),
    )
    assert kinds(log.rebalances()[1]) == ["topology_changed", "topology_changed"]
    assert [cause.detail for cause in log.rebalances()[1].causes] == ["topology epoch 0 to 1", "topology epoch 0 to 1"]


def test_a_warm_up_task_that_caught_up_is_a_cause():
    """KIP-1071: nothing else opens an epoch without a record; the next target ends the warm-up task."""
    active, warmup = [{"subtopologyId": "0", "partitions": [1]}], [{"subtopologyId": "0", "partitions": [0]}]
    log = GroupLog().write(
        streams("MEMBER_METADATA", streams_member(clientTags=[{"key": "zone", "value": "a"}]), "m"),
        streams("TOPOLOGY", TOPOLOGY),
        streams("METADATA", _streams_epoch(2, "0")),
        streams("TARGET_ASSIGNMENT_MEMBER", {"activeTasks": active, "standbyTasks": [], "warmupTasks": warmup}, "m"),
        streams("TARGET_ASSIGNMENT_METADATA", {"assignmentEpoch": 2}),
        streams("CURRENT_MEMBER_ASSIGNMENT", streams_current(2, active=[1], warmup=[0]), "m"),
    )
    both = [{"subtopologyId": "0", "partitions": [0, 1]}]
    log.write(
        streams("METADATA", _streams_epoch(3, "0")),
        streams("TARGET_ASSIGNMENT_MEMBER", {"activeTasks": both, "standbyTasks": [], "warmupTasks": []}, "m"),
        streams("TARGET_ASSIGNMENT_METADATA", {"assignmentEpoch": 3}),
    )
    log.write(
        streams("METADATA", _streams_epoch(4, "0")), streams("TARGET_ASSIGNMENT_METADATA", {"assignmentEpoch": 4})
    )
    first, second, third = log.rebalances()
    assert kinds(first) == ["member_joined"]
    assert [(each.kind, each.member_id, each.detail) for each in second.causes] == [
        ("warmup_caught_up", "m", "task 0_0")
    ]
    assert [row.causes for row in log.epochs()][1] == second.causes
    assert kinds(third) == ["unknown"]
    membership = log.memberships()["m"]
    assert (membership.process_id, membership.topology_epoch, membership.client_tags) == ("p", 0, ("zone=a",))
    assert membership.user_endpoint is None


def test_a_task_that_was_dropped_is_a_cause_only_where_none_was_turned() -> None:
    """In one target: m's warm-up task 0_0 becomes active, n's warm-up task 0_1 ends; the order of members is free."""
    for order in (("m", "n"), ("n", "m")):
        log = GroupLog().write(
            *(streams("MEMBER_METADATA", {**streams_member(), "processId": each}, each) for each in ("m", "n")),
            streams("TOPOLOGY", TOPOLOGY),
            streams("METADATA", _streams_epoch(2, "0")),
            streams("TARGET_ASSIGNMENT_METADATA", {"assignmentEpoch": 2}),
            streams("CURRENT_MEMBER_ASSIGNMENT", streams_current(2, warmup=[0]), "m"),
            streams("CURRENT_MEMBER_ASSIGNMENT", streams_current(2, warmup=[1]), "n"),
        )
        active = {"m": [{"subtopologyId": "0", "partitions": [0]}], "n": []}
        log.write(
            streams("METADATA", _streams_epoch(3, "0")),
            *(
                streams(
                    "TARGET_ASSIGNMENT_MEMBER",
                    {"activeTasks": active[each], "standbyTasks": [], "warmupTasks": []},
                    each,
                )
                for each in order
            ),
            streams("TARGET_ASSIGNMENT_METADATA", {"assignmentEpoch": 3}),
        )
        last = log.rebalances()[-1]
        assert [(each.member_id, each.detail) for each in last.causes] == [("m", "task 0_0")]


@pytest.mark.parametrize(
    ("reached", "active", "found"),
    [(2, [0, 1], "warmup_caught_up"), (1, [0, 1], "unknown"), (2, [1], "unknown")],
    ids=["refined", "the member is behind", "the task is another member's"],
)
def test_an_epoch_with_the_target_as_it_was_is_a_step_of_a_warm_up(reached: int, active: list[int], found: str) -> None:
    """Pull request 22748: the target gives the member a task that it still warms up, and the next epoch keeps it."""
    tasks = [{"subtopologyId": "0", "partitions": active}]
    log = GroupLog().write(
        streams("MEMBER_METADATA", streams_member(), "m"),
        streams("TOPOLOGY", TOPOLOGY),
        streams("METADATA", _streams_epoch(2, "0")),
        streams("TARGET_ASSIGNMENT_MEMBER", {"activeTasks": tasks, "standbyTasks": [], "warmupTasks": []}, "m"),
        streams("TARGET_ASSIGNMENT_METADATA", {"assignmentEpoch": 2}),
        streams("CURRENT_MEMBER_ASSIGNMENT", streams_current(reached, active=[1], warmup=[0]), "m"),
    )
    log.write(
        streams("METADATA", _streams_epoch(3, "0")),
        streams("TARGET_ASSIGNMENT_METADATA", {"assignmentEpoch": 3}),
        streams("CURRENT_MEMBER_ASSIGNMENT", streams_current(3, active=[0, 1]), "m"),
    )
    _, second = log.rebalances()
    assert (kinds(second), second.outcome) == ([found], "converged")
    assert [each.detail for each in second.causes if each.member_id] == ["task 0_0"] * (found != "unknown")


def test_the_description_of_a_topology_that_a_plugin_stored_opens_no_epoch() -> None:
    tasks = [{"subtopologyId": "0", "partitions": [0]}]
    log = GroupLog().write(
        streams("MEMBER_METADATA", streams_member(), "m"),
        streams("TOPOLOGY", TOPOLOGY),
        streams("METADATA", _streams_epoch(2, "0")),
        streams("TARGET_ASSIGNMENT_MEMBER", {"activeTasks": tasks, "standbyTasks": [], "warmupTasks": []}, "m"),
        streams("TARGET_ASSIGNMENT_METADATA", {"assignmentEpoch": 2}),
        streams("CURRENT_MEMBER_ASSIGNMENT", streams_current(2, active=[0]), "m"),
    )
    log.write(streams("METADATA", {**_streams_epoch(2, "0"), "storedDescriptionTopologyEpoch": 0}))
    (row,) = log.epochs()
    assert (row.epoch, row.state) == (2, "STABLE")


SHARED = (
    share("MEMBER_METADATA", {**CLIENT, "subscribedTopicNames": ["t"]}, "s1"),
    share("METADATA", {"epoch": 6, "metadataHash": 7}),
)


@pytest.mark.parametrize("later", [SHARED, (generation(7, {"c1": classic({"t": [0]})}),)], ids=["share", "classic"])
def test_a_group_of_another_type_behind_a_hole_may_be_another_group(later: tuple[Change, ...]) -> None:
    """It was deleted among the records that are missing, and created again; or it was converted: nothing tells."""
    log = alone(GroupLog()).skip(20).write(*later)
    rows = log.rows(coverage=Coverage({0: [(0, 4), (25, 100)]}))
    before, _ = (row for row in rows if isinstance(row, GroupEpochRow))
    assert (before.ended_by, before.history_complete) == ("end not seen", False)
    (gone,) = (row for row in rows if isinstance(row, MembershipRow) and row.member_id == "m1")
    assert (gone.went_by, gone.last_epoch, gone.history_complete) == ("end not seen", None, False)
    after = log.rebalances(coverage=Coverage({0: [(0, 4), (25, 100)]}))[-1]
    assert (kinds(after), after.from_epoch, after.members_before) == (["unknown"], None, None)
    assert not after.history_complete


@pytest.mark.parametrize(("skipped", "how"), [(0, "end not seen"), (1, "group deleted")])
def test_without_times_a_streams_group_may_have_been_converted_behind_the_end_of_its_topology(
    skipped: int, how: str
) -> None:
    """The tombstone of the topology lies between that of the epoch and what the group is then (KIP-1071)."""
    log = GroupLog().write(
        streams("MEMBER_METADATA", streams_member(), "m"),
        streams("TOPOLOGY", TOPOLOGY),
        streams("METADATA", _streams_epoch(2, "0")),
    )
    log.write(streams("MEMBER_METADATA", None, "m"), streams("METADATA", _streams_epoch(3, "0")))
    log.write(streams("METADATA", None), streams("TOPOLOGY", None))
    log.skip(skipped).write(generation(2, {"m": classic({"t": [0]})}))
    assert without_times(log).epochs()[1].ended_by == how


def test_no_group_is_converted_to_a_share_group() -> None:
    log = alone(GroupLog()).write(*SHARED)
    before, _ = log.epochs()
    assert before.ended_by == "end not seen"
    assert "group_downgraded" not in kinds(log.rebalances()[-1])


@pytest.mark.parametrize(
    ("before", "after"),
    [((epoch(3), epoch(4)), (member("m9", "t"), epoch(3))), ((generation(5, {}),), (generation(2, {}),))],
    ids=["epochs", "generations"],
)
def test_an_epoch_behind_a_hole_does_not_follow_a_higher_one(
    before: tuple[Change, ...], after: tuple[Change, ...]
) -> None:
    log = GroupLog().write(*before).skip(20).write(*after)
    end = len(before) - 1
    last = log.rebalances(coverage=Coverage({0: [(0, end), (end + 21, 100)]}))[-1]
    assert (last.from_epoch, last.history_complete) == (None, False)


def test_a_member_from_before_a_hole_does_not_keep_a_rebalance_in_progress() -> None:
    """It may have left among the records that are missing; the target is there, and nobody else is behind it."""
    later = (member("m2", "t"), epoch(3), target("m2", 0, 1, 2, 3), target_epoch(3), current("m2", 3, 0, 1, 2, 3))
    log = alone(GroupLog()).skip(20).write(*later)
    whole, holed = (log.rebalances(coverage=coverage)[-1] for coverage in (None, Coverage({0: [(0, 4), (25, 100)]})))
    assert (whole.outcome, whole.behind) == ("open", ("m1",))
    assert (holed.outcome, holed.members_behind, holed.is_open) == ("unknown", None, True)


def test_a_topic_that_is_newer_than_the_metadata_log_was_not_deleted() -> None:
    """A request of share state that failed empties the list; whether the topic is there decides what that means."""
    asked = {"initializingTopics": [{"topicId": B, "topicName": "new", "partitions": [0]}]}
    states = [{**asked, "initializedTopics": [], "deletingTopics": []} for asked in (asked, {"initializingTopics": []})]
    log = GroupLog()
    for state in states:
        log.write(share("STATE_PARTITION_METADATA", state))
    outcomes = []
    for last_seen_ms in (100_000, 2_500):
        topics = existing(t=1)
        topics.last_seen_ms = last_seen_ms
        outcomes += [
            row.outcome
            for row in log.rows(topics, Coverage({0: [(0, 100)]}))
            if isinstance(row, ShareInitializationRow)
        ]
    assert outcomes == ["topic deleted", "open"]

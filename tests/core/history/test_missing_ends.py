"""A log partition that ends before the others lacks its end where a group had to write more by then."""

from collections.abc import Iterable

import pytest

from coordinator_core.cluster.metadata_hash import group_hash, topic_hash
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.groups.end_offsets import EndOffset
from coordinator_core.groups.group import Group
from coordinator_core.history.missing_ends import SHORTEST_MS, AtEnd, LogTail, missing_end, served_until, shown_end
from coordinator_core.records import GROUP_LOG, CoordinatorRecord, MetadataRecordType
from tests.core.builders import GroupLog, subtopology
from tests.core.cluster.test_metadata_log import A, B, Log, broker, change, partition, remove, topic

START_MS = 100_000
"""When the group's log begins: its records are a second apart."""
TAIL = LogTail(GROUP_LOG, 0, 9, START_MS + 10_000)
DUE_MS = TAIL.last_ms + 60_000
TOLD_MS = DUE_MS + 10_000
"""A session expires by the first time; by the clock of another machine, by the second one."""


def metadata() -> Log:
    """The log of a cluster of one broker, which coordinates the groups of the partition; with a topic ``orders``."""
    log = Log().batch(broker(1, None), topic(GROUP_LOG, A), partition(A, 0, 1))
    return log.batch(topic("orders", B), partition(B, 0, 1))


def until(time_ms: int, log: Log | None = None) -> TopicHistory:
    return (log or metadata()).lasts(time_ms).history()


def hash_of_orders(topics: TopicHistory) -> int:
    image = topics.image_at(None)
    assert image is not None
    return group_hash([("orders", topic_hash(image.by_name["orders"]))])


def group(records: Iterable[CoordinatorRecord]) -> Group:
    made = Group("g", from_start=True)
    for record in records:
        made.apply(record)
    return made


def converged(metadata_hash: int = 7) -> list[CoordinatorRecord]:
    log = GroupLog()
    return [
        log.epoch(2, metadata_hash),
        log.member("a"),
        log.target_epoch(2),
        log.target("a", {B: [0]}),
        log.current("a", 2, {B: [0]}),
    ]


def behind(**more: object) -> list[CoordinatorRecord]:
    """A member that has not yet reached the target of the next epoch."""
    log = GroupLog()
    return [log.member("a", **more), log.epoch(3), log.target_epoch(3), log.current("a", 2, {B: [0]})]


def told(
    records: list[CoordinatorRecord], topics: TopicHistory | None, committed: Iterable[tuple[str, str]] = ()
) -> str | None:
    return missing_end(TAIL, lambda: AtEnd([group(records)], committed), topics)


def test_a_member_that_is_behind_goes_on_or_its_session_expires() -> None:
    reason = told(behind(), until(TOLD_MS))
    assert reason == (
        "__consumer_offsets-0 ends at 1970-01-01T00:01:50.000Z, 1 min 10 s before the metadata log, and its end is "
        "missing: member a has not reached epoch 3, so that group 'g' has a record by 1970-01-01T00:02:50.000Z"
    )
    assert told(behind(), until(TOLD_MS - 1)) is None
    assert told(converged(), until(10 * TOLD_MS)) is None


def test_without_the_metadata_log_nothing_tells_that_the_coordinator_stayed() -> None:
    assert told(behind(), None) is None
    assert served_until(TAIL, None) == -1
    assert served_until(TAIL._replace(partition=1), until(TOLD_MS)) == -1
    assert served_until(TAIL._replace(last_ms=500), until(TOLD_MS)) == -1, "before the partition had its first leader"


def test_another_leader_begins_all_times_again() -> None:
    taken_over = metadata().lasts(TAIL.last_ms + 30_000).batch(change(A, 0, leader=1, leaderEpoch=1))
    assert told(behind(), until(10 * TOLD_MS, taken_over)) is None
    assert served_until(TAIL, taken_over.history()) == TAIL.last_ms + 31_000


def test_a_coordinator_that_is_away_writes_nothing() -> None:
    gone = metadata().lasts(TAIL.last_ms + 30_000).batch(change(A, 0, leader=-1, leaderEpoch=1))
    assert told(behind(), until(10 * TOLD_MS, gone)) is None


def test_a_member_that_waits_for_others_proves_nothing() -> None:
    log = GroupLog()
    waits = [log.epoch(3), log.member("a"), log.target_epoch(3), log.current("a", 3, {B: [0]}, state=2)]
    assert told(waits, until(100 * TOLD_MS)) is None


def test_a_member_gives_up_what_it_has_within_its_rebalance_timeout() -> None:
    log = GroupLog()
    asked = log.current("a", 2, {B: [0]}, {B: [1]}, state=1)
    records = [log.epoch(3), log.member("a", rebalanceTimeoutMs=90_000), log.target_epoch(3), asked]
    assert told(records, until(TAIL.last_ms + 99_999)) is None
    assert "member a has to give up what it has" in (told(records, until(TAIL.last_ms + 100_000)) or "")


def test_a_static_member_that_is_away_returns_or_its_session_expires() -> None:
    log = GroupLog()
    away = [log.epoch(2), log.member("a", instanceId="i"), log.target_epoch(2), log.current("a", -2, {B: [0]})]
    assert "the static member a is away" in (told(away, until(TOLD_MS)) or "")


def test_a_client_of_the_classic_protocol_chose_its_session_timeout() -> None:
    classic = {"sessionTimeoutMs": 600_000, "supportedProtocols": []}
    assert told(behind(classicMemberMetadata=classic), until(10 * TOLD_MS)) is None


def test_a_session_timeout_that_is_set_for_the_group_counts() -> None:
    log = metadata()
    config = {"resourceType": 32, "resourceName": "g", "name": "consumer.session.timeout.ms", "value": "120000"}
    log.batch((MetadataRecordType.CONFIG, config))
    assert told(behind(), until(TOLD_MS + 59_000, log)) is None
    assert told(behind(), until(TOLD_MS + 60_000, log)) is not None


@pytest.mark.parametrize(("kind", "is_told"), [("grown", True), ("moved", False), ("nothing", False)])
def test_topics_that_changed_open_an_epoch(kind: str, *, is_told: bool) -> None:
    log = metadata()
    records = converged(hash_of_orders(log.history()))
    log.lasts(TAIL.last_ms + 5_000)
    if kind == "grown":
        log.batch(partition(B, 1, 1))
    elif kind == "moved":
        log.batch(broker(2, "rack"), change(B, 0, replicas=[2], leader=2))
    reason = told(records, until(TOLD_MS + 20_000, log))
    assert ("topics that its members subscribe to have changed" in (reason or "")) is is_told
    nobody = [*records, *GroupLog().gone("a")]
    assert told(nobody, until(TOLD_MS + 20_000, log)) is None


@pytest.mark.parametrize(("deleted_ms", "topic_id", "is_told"), [(20_000, B, True), (-1_000, B, False)])
def test_offsets_go_with_their_topic_whatever_the_group_is(deleted_ms: int, topic_id: str, *, is_told: bool) -> None:
    log = metadata().lasts(TAIL.last_ms + deleted_ms).batch(remove(topic_id))
    topics, committed = until(TOLD_MS, log), [("classic", "other"), ("classic", "orders")]
    reason = told([], topics, committed)
    assert ("topic orders was deleted, of which it has offsets, so that group 'classic'" in (reason or "")) is is_told
    assert told([], topics, committed[:1]) is None


def test_topics_of_a_streams_group_that_changed_open_an_epoch() -> None:
    log, records = metadata(), GroupLog()
    streams = [
        records.streams_epoch(2, metadata_hash=hash_of_orders(log.history())),
        records.topology([subtopology("0", ["orders"])]),
        records.streams_member("a"),
        records.streams_current("a", 2),
    ]
    log.lasts(TAIL.last_ms + 5_000)
    assert told(streams, until(TOLD_MS + 20_000)) is None
    grown = until(TOLD_MS + 20_000, log.batch(partition(B, 1, 1)))
    assert "topics that its members subscribe to have changed" in (told(streams, grown) or "")


@pytest.mark.parametrize(
    ("read_ms", "offset", "is_told"),
    [
        (TAIL.last_ms + SHORTEST_MS, 11, True),
        (TAIL.last_ms + SHORTEST_MS, 10, False),
        (TAIL.last_ms + SHORTEST_MS - 1, 11, False),
        (TAIL.last_ms + SHORTEST_MS + 1, 11, False),
    ],
)
def test_a_snapshot_between_the_ends_of_logs_shows_how_far_a_partition_went(
    read_ms: int, offset: int, *, is_told: bool
) -> None:
    reason = shown_end(TAIL, [EndOffset(read_ms, offset)], TAIL.last_ms + 2 * SHORTEST_MS)
    assert ("its end is missing: a snapshot of" in (reason or "")) is is_told

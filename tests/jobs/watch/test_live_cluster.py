"""What a watch learns of a running cluster beside its logs: topics, and who leads the logs of coordinators."""

from pathlib import Path
from typing import Any

import pytest

from coordinator_core.audit.settings import AuditSettings
from coordinator_core.cluster.topic_history import TopicHistory
from coordinator_core.errors import InputError
from jobs.watch import live_broker
from jobs.watch.events import FindingEvent
from jobs.watch.followed_groups import FollowedGroups
from jobs.watch.live_broker import LiveBroker, Look, TakenSnapshot
from jobs.watch.live_topics import Leaders, LiveTopics
from jobs.watch.state_file import StateFile
from tests.jobs.watch.samples import LIMITS

OFFSETS = ("__consumer_offsets", 0)
LED, LEADERLESS = {OFFSETS: 1}, {OFFSETS: -1}
SETTINGS = {"resource_type": "BROKER", "resource": "1", "configs": {"group.a": "1"}, "missing": None}


def partitions(counts: dict[str, int], time_ms: int) -> list[dict[str, Any]]:
    place = {"replica_racks": [None], "timestamp_ms": time_ms, "end_offset": 0, "cluster_id": "c"}
    of_topics = [
        {"topic": name, "topic_id": f"{name:A<22}", "partition": number, **place}
        for name, count in counts.items()
        for number in range(count)
    ]
    return [*of_topics, {**SETTINGS, "timestamp_ms": time_ms, "cluster_id": "c"}]


def taken(*lists: tuple[int, dict[str, int]]) -> LiveTopics:
    live = LiveTopics()
    for time_ms, counts in lists:
        live.take(partitions(counts, time_ms), time_ms)
    return live


def counts_at(history: TopicHistory, time_ms: int) -> dict[str, int] | None:
    image = history.image_at(time_ms)
    return None if image is None else {name: topic.partitions for name, topic in image.by_name.items()}


def live_groups(live: LiveTopics) -> FollowedGroups:
    groups = FollowedGroups(AuditSettings(), LIMITS, None, pytest.fail, lambda: 0.0, live)
    groups.is_live = True
    return groups


def test_topics_are_those_of_the_list_at_the_time() -> None:
    live = taken((10, {"a": 1, "b": 2}), (20, {"a": 1, "b": 2}), (30, {"a": 3}))
    assert [listed.time_ms for listed in live.lists] == [10, 30], "a list without news is no version"
    history = live.history
    assert [counts_at(history, time_ms) for time_ms in (9, 10, 29, 30)] == [
        None,
        {"a": 1, "b": 2},
        {"a": 1, "b": 2},
        {"a": 3},
    ]
    assert history.last_seen_ms == 30


def test_settings_hold_from_the_first_to_the_last_snapshot_that_shows_them() -> None:
    live = taken(*((time_ms, {"a": 1}) for time_ms in range(10, 60, 10)))
    known = live.history.snapshots
    assert [known.value("BROKER", "1", "group.a", time_ms) for time_ms in (9, 10, 35, 50, 51)] == [
        None,
        "1",
        "1",
        "1",
        None,
    ]


def test_a_watch_that_goes_on_knows_the_versions_of_topics_that_its_groups_have_seen(tmp_path: Path) -> None:
    groups = live_groups(taken((10, {"a": 1}), (20, {"a": 2})))
    groups.use_live_topics()
    state = StateFile(tmp_path / "state", "c")
    state.save(groups)
    groups.take_snapshot(TakenSnapshot(30, partitions({"b": 1}, 30)))
    state.save(groups)
    state.close()
    again = live_groups(LiveTopics())
    state = StateFile(tmp_path / "state", "c")
    state.load(again)
    state.close()
    assert again.topics is not None
    assert groups.topics is not None
    assert again.topics.positions == groups.topics.positions
    assert [counts_at(again.topics, time_ms) for time_ms in (10, 20, 30)] == [{"a": 1}, {"a": 2}, {"b": 1}]


def test_topics_that_the_cluster_gives_late_are_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    refusals = [InputError("no answer"), InputError("no answer")]

    def take(*_: object) -> list[dict[str, Any]]:
        if refusals:
            raise refusals.pop()
        return partitions({"a": 1}, 10)

    monkeypatch.setattr(live_broker.cluster_snapshot, "take", take)
    monkeypatch.setattr(live_broker, "SNAPSHOT_S", 0.0)
    monkeypatch.setattr(live_broker, "LOOK_S", 0.0)
    broker = LiveBroker("b:1", {}, said.append)
    monkeypatch.setattr(broker, "_look", lambda _: Look(1, {}, None, broker._new_snapshot({})))
    assert broker.snapshot() is None
    looks: list[Look] = []
    while len(looks) < 2:
        looks += [look for look in [broker.look(list)] if look is not None]
    assert looks[0].snapshot is None
    assert looks[1].snapshot is not None
    assert looks[1].snapshot.rows == partitions({"a": 1}, 10)
    broker.close()
    assert said == [
        "the topics of the cluster are not known, and targets are not judged: no answer",
        "the topics of the cluster are known now, and targets are judged",
    ]


def looked(*looks: tuple[int, Leaders | None]) -> list[FindingEvent]:
    groups = live_groups(LiveTopics())
    events: list[FindingEvent] = []
    for time_ms, leaders in looks:
        groups.take_look(Look(time_ms, leaders))
        events += (event for event in groups.events() if isinstance(event, FindingEvent))
    return events


def test_a_coordinator_that_does_not_answer_is_away_until_it_answers_again() -> None:
    began, ended = looked((0, LED), (5_000, None), (8_000, None), (11_000, None), (20_000, LED), (25_000, LED))
    assert began.change == "began"
    assert ended.change == "ended"
    assert (began.row.kind, began.row.level, began.row.is_open) == ("coordinator_away", "alarm", True)
    assert (ended.row.since_ms, ended.row.until_ms, ended.row.value) == (5_000, 20_000, 15_000)
    assert "1 partition of __consumer_offsets had no leader that this watch could reach" in ended.row.detail
    assert ended.row.certainty.startswith("Seen by a watch")


def test_brokers_that_say_that_a_partition_has_no_leader_are_believed_at_once() -> None:
    began, ended = looked((0, LED), (5_000, LEADERLESS), (10_000, LEADERLESS), (15_000, {OFFSETS: 2}))
    assert (began.row.since_ms, ended.row.until_ms) == (5_000, 15_000)


def test_one_answer_that_is_lost_and_another_leader_are_no_absence() -> None:
    assert looked((0, LED), (5_000, None), (8_000, LED), (13_000, {OFFSETS: 2}), (18_000, None), (21_000, LED)) == []


def test_a_partition_that_never_had_a_leader_is_not_told_of() -> None:
    assert looked((0, LEADERLESS), (5_000, LEADERLESS)) == []


def test_the_time_that_goes_on_is_told_again_once_it_is_much_longer() -> None:
    events = looked((0, LED), *((time_ms, None) for time_ms in range(5_000, 150_000, 5_000)))
    assert [event.row.value for event in events] == [5_000, 65_000, 130_000]

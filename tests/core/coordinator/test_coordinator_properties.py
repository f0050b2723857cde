"""What holds of the coordinator whatever its clients do."""

from copy import deepcopy

from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.coordinator import coordinator
from coordinator_core.coordinator.consumer.group import LiveConsumerGroup
from coordinator_core.coordinator.share.group import LiveShareGroup
from coordinator_core.coordinator.streams.group import LiveStreamsGroup
from coordinator_core.groups.shard import CoordinatorShard
from coordinator_core.records import CoordinatorRecord, Fields
from coordinator_core.wire.record_codec import decode_record, encode_key, encode_value
from tests.core.coordinator.clients import GROUP, Cluster, Consumer
from tests.core.coordinator.requests import any_request, classic_request, consumer_request, offset_request

TOPICS = {"a": 4, "b": 3, "ab": 1}
SENDERS = {"consumer": consumer_request, "classic": classic_request, "offsets": offset_request}
ACTIONS = ("consumer", "consumer", "classic", "classic", "offsets", "time", "work", "topics")


def in_bytes(record: CoordinatorRecord) -> tuple[bytes, bytes | None]:
    """The record as it goes into the log."""
    value = None if record.value is None else encode_value(record.type, record.value_version or 0, record.value)
    return encode_key(record.type, record.key), value


def check_invariants(cluster: Cluster, epochs: list[int]) -> None:
    """No partition in two hands, no epoch that goes back or runs ahead of the one above it."""
    group = cluster.memory.live.get(GROUP)
    if not isinstance(group, LiveConsumerGroup):
        epochs.clear()
        return
    held = [
        (topic, partition)
        for member in group.log.members.values()
        for partitions in (member.assigned, member.pending_revocation)
        for topic, numbers in partitions.items()
        for partition in numbers
    ]
    assert len(held) == len(set(held))
    assert {(topic, partition) for topic, owned in group.owned.items() for partition in owned} == set(held)
    assert group.assignment_epoch <= group.group_epoch
    assert all((member.member_epoch or 0) <= group.assignment_epoch for member in group.log.members.values())
    assert not epochs or epochs[-1] <= group.group_epoch
    epochs.append(group.group_epoch)


def check_replay(cluster: Cluster) -> None:
    """The records alone, as bytes, lead to the same state and to the same indices beside it."""
    shard, memory = CoordinatorShard(), coordinator.new_state(cluster.memory.config)
    for record in cluster.log:
        decoded = decode_record(*in_bytes(record))
        again = record._replace(key=decoded.key, value=decoded.value)
        shard.apply(again)
        memory.follow(again)
    group, logged = cluster.memory.log.groups.get(GROUP), shard.groups.get(GROUP)
    assert (None if group is None else group.state) == (None if logged is None else logged.state)
    live, loaded = cluster.memory.live.get(GROUP), memory.live.get(GROUP)
    if isinstance(live, LiveConsumerGroup):
        assert isinstance(loaded, LiveConsumerGroup)
        for name in ("subscriptions", "classic_members", "classic_protocols", "homogeneous"):
            assert getattr(loaded, name) == getattr(live, name)
        assert dict(loaded.assignors.counts) == dict(live.assignors.counts)
        assert loaded.view.static == live.view.static


def compacted(log: list[CoordinatorRecord]) -> list[CoordinatorRecord]:
    """What compaction leaves: the last record of every key, without the tombstones."""
    last = {encode_key(record.type, record.key): record for record in log}
    return [record for record in sorted(last.values(), key=lambda each: each.at) if record.value is not None]


def check_compacted(cluster: Cluster) -> None:
    """The compacted log leads to the same group; only the order in which its members appeared may be another one."""
    memory = coordinator.new_state(cluster.memory.config)
    for record in compacted(cluster.log):
        memory.follow(record)
    logged, loaded_log = (each.log.groups.get(GROUP) for each in (cluster.memory, memory))
    assert (None if loaded_log is None else loaded_log.state) == (None if logged is None else logged.state)
    live, loaded = cluster.memory.live.get(GROUP), memory.live.get(GROUP)
    if isinstance(live, LiveConsumerGroup):
        assert isinstance(loaded, LiveConsumerGroup)
        assert loaded.owned == {topic: owned for topic, owned in live.owned.items() if owned}
        assert loaded.subscriptions == live.subscriptions
    elif isinstance(live, LiveShareGroup):
        assert isinstance(loaded, LiveShareGroup)
        assert loaded.subscriptions == live.subscriptions
    elif isinstance(live, LiveStreamsGroup):
        assert isinstance(loaded, LiveStreamsGroup)
        assert (loaded.active, loaded.standby, loaded.warmup) == (live.active, live.standby, live.warmup)
    # A new coordinator expects signs of life of everybody; without them the group is empty in the end.
    loading = Cluster(memory, cluster.topics, cluster.now)
    coordinator.take_over(memory, cluster.topics, cluster.now)
    loading.pass_time(400_000)
    group = memory.live.get(GROUP)
    assert group is None or group.is_empty


def makes_the_broker_forget(cluster: Cluster, api: str, request: Fields) -> bool:
    """Kafka drops an empty consumer group from memory, unwritten, if a classic member with an id asks to join it."""
    group = cluster.memory.live.get(GROUP)
    return api == "JoinGroup" and bool(request["memberId"]) and isinstance(group, LiveConsumerGroup) and group.is_empty


@given(st.data())
def test_any_script_keeps_the_invariants(data: st.DataObject) -> None:
    settings = {"group.consumer.assignment.interval.ms": data.draw(st.sampled_from([0, 1000]))}
    cluster = Cluster.of(TOPICS, **settings)
    epochs: list[int] = []
    for _ in range(data.draw(st.integers(1, 40))):
        action = data.draw(st.sampled_from(ACTIONS))
        if action == "time":
            cluster.pass_time(data.draw(st.sampled_from([100, 3_000, 10_000, 46_000])))
        elif action == "work":
            cluster.do_background_work()
        elif action == "topics":
            cluster.set_topics(data.draw(st.sampled_from([TOPICS, {"a": 6, "b": 3}, {"a": 6, "c": 2}])))
        else:
            api, version, request = data.draw(SENDERS[action])
            if not makes_the_broker_forget(cluster, api, request):
                cluster.send(api, version, request)
        check_invariants(cluster, epochs)
    check_replay(cluster)
    check_compacted(cluster)


@given(st.lists(any_request, min_size=1, max_size=8))
def test_any_request_is_answered_and_what_it_writes_can_be_written(requests: list[tuple[str, int, object]]) -> None:
    cluster = Cluster.of(TOPICS)
    for api, version, data in requests:
        before = deepcopy(cluster.memory.log)
        outcome = cluster.send(api, version, data)
        assert (outcome.response is None) == (outcome.error is not None or outcome.pending)
        if outcome.error is not None:
            assert not outcome.records
            assert cluster.memory.log == before
        for record in outcome.records:
            in_bytes(record)


@given(
    st.lists(st.sets(st.sampled_from(["a", "b", "c"]), max_size=3), min_size=1, max_size=7),
    st.sampled_from(["uniform", "range"]),
    st.sampled_from([0, 1000]),
    st.data(),
)
def test_consumers_converge(subscriptions: list[set[str]], assignor: str, interval: int, data: st.DataObject) -> None:
    """Once nothing changes any more, everybody is at the target after a bounded number of heartbeats each."""
    cluster = Cluster.of({"a": 5, "b": 3, "c": 1}, **{"group.consumer.assignment.interval.ms": interval})
    consumers = [Consumer(cluster, f"m{n}", sorted(names), assignor=assignor) for n, names in enumerate(subscriptions)]
    for consumer in data.draw(st.permutations(consumers)):
        consumer.beat()
        data.draw(st.sampled_from(consumers)).beat()
    for _ in range(4):
        cluster.pass_time(1_000)
        for consumer in consumers:
            consumer.beat()
    group = cluster.memory.live[GROUP]
    assert isinstance(group, LiveConsumerGroup)
    assert {consumer.epoch for consumer in consumers} == {group.group_epoch}
    assert all(member.state == 0 for member in group.log.members.values())
    wanted = {topic.id: set(range(topic.partitions)) for topic in cluster.topics.by_name.values()}
    subscribed = {cluster.topics.by_name[name].id for names in subscriptions for name in names}
    held: dict[str, set[int]] = {}
    for consumer in consumers:
        for each in consumer.owned:
            held.setdefault(each["topicId"], set()).update(each["partitions"])
    assert held == {topic: wanted[topic] for topic in subscribed}

"""The fold of hand-built cluster metadata records."""

from itertools import count

from coordinator_core.cluster.image import Topic
from coordinator_core.cluster.metadata_hash import group_hash, topic_hash
from coordinator_core.cluster.metadata_log import MetadataLog, fold_metadata_log
from coordinator_core.records import GROUP_LOG, CoordinatorRecord, LogPosition, MetadataRecordType

A, B = "5J6Vb5ZiR3aDu5l2a3l1Ew", "AAAAAAAAAAAAAAAAAAAAAQ"


class Log:
    """Batches of metadata records, one second apart, offsets from ``start``."""

    def __init__(self, start=0):
        self.records = []
        self._offsets = count(start)
        self._time = 0

    def batch(self, *changes):
        self._time += 1000
        base = None
        for kind, value in changes:
            offset = next(self._offsets)
            base = offset if base is None else base
            at = LogPosition(0, offset, self._time)
            self.records.append(CoordinatorRecord(at, int(kind), {}, value, 0, base))
        return self

    def lasts(self, time_ms):
        """Nothing changes up to a time: the controller writes a record that says nothing."""
        self._time = time_ms - 1000
        return self.batch((MetadataRecordType.NO_OP, {}))

    def history(self):
        return fold_metadata_log(self.records)


def broker(number, rack):
    return MetadataRecordType.REGISTER_BROKER, {"brokerId": number, "rack": rack}


def supporting(number, level):
    kind, fields = broker(number, None)
    features = [{"name": "metadata.version", "minSupportedVersion": 1, "maxSupportedVersion": level}]
    return kind, {**fields, "features": features}


def topic(name, topic_id):
    return MetadataRecordType.TOPIC, {"name": name, "topicId": topic_id}


def partition(topic_id, number, *replicas):
    fields = {"replicas": list(replicas), "leader": replicas[0], "leaderEpoch": 0}
    return MetadataRecordType.PARTITION, {"topicId": topic_id, "partitionId": number, **fields}


def change(topic_id, number, **fields):
    return MetadataRecordType.PARTITION_CHANGE, {"topicId": topic_id, "partitionId": number, **fields}


def remove(topic_id):
    return MetadataRecordType.REMOVE_TOPIC, {"topicId": topic_id}


def test_a_topic_id_that_comes_again_under_another_name_is_a_gap():
    """The first name is gone, and may come again under an id of its own."""
    log = Log().batch(topic("a", A), partition(A, 0, 1)).batch(topic("b", A), partition(A, 0, 1))
    log.batch(topic("a", B), partition(B, 0, 1)).batch(topic("b", B), partition(B, 0, 1)).batch(remove(B), remove(A))
    history = log.history()
    assert [gap.cause.startswith("topic id") for gap in history.gaps].count(True) == 2
    image = history.image_at(None)
    assert image is not None
    assert not image.by_name


def config(name, value, resource="g", resource_type=32):
    fields = {"resourceType": resource_type, "resourceName": resource, "name": name, "value": value}
    return MetadataRecordType.CONFIG, fields


BEGIN, END, ABORT = (
    (kind, {})
    for kind in (
        MetadataRecordType.BEGIN_TRANSACTION,
        MetadataRecordType.END_TRANSACTION,
        MetadataRecordType.ABORT_TRANSACTION,
    )
)


def hash_of(*topics):
    return group_hash([(topic.name, topic_hash(topic)) for topic in topics])


def test_the_oldest_broker_by_what_brokers_support():
    history = (
        Log()
        .batch(broker(9, None))
        .batch(supporting(1, 21))
        .batch(supporting(2, 21))
        .batch(supporting(1, 25))
        .batch((MetadataRecordType.UNREGISTER_BROKER, {"brokerId": 2, "brokerEpoch": 1}))
        .history()
    )
    times = [each.at.timestamp_ms for each in history.brokers.registrations(-1, 2**40)]
    assert [history.oldest_broker(time_ms) for time_ms in times] == [None, 21, 21, 21]
    assert history.oldest_broker(None) == 25


def test_a_topic_grows_and_dies():
    log = Log().batch(broker(1, "r1"), broker(2, None))
    log.batch(topic("t", A), partition(A, 0, 1, 2)).batch(partition(A, 1, 2)).batch(remove(A))
    history = log.history()
    assert history.complete
    assert history.at(999) is None
    assert dict(history.at(1999).image.by_name) == {}
    first = Topic("t", A, 1, (("r1",),), ((1, 2),))
    grown = Topic("t", A, 2, (("r1",), ()), ((1, 2), (2,)))
    assert dict(history.at(2000).image.by_name) == {"t": first}
    assert history.at(3500).image.by_id[A] == grown
    assert history.at(3500).at == LogPosition(0, 4, 3000)
    assert len(history.at(4000).image.by_name) == 0
    assert history.topic_name(A) == "t"
    assert history.topic_name(B) is None
    assert [change.kind for change in history.changes(["t"], 0, 3)] == ["created", "grown", "deleted"]
    assert [(row.partitions, row.since.offset, row.ended_by) for row in history.intervals()] == [
        (1, 3, "changed"),
        (2, 4, "deleted"),
    ]


def test_topics_of_one_batch_have_the_same_order_in_every_process():
    """The order of the ids, which a set of texts would not have."""
    ids = [f"{letter * 21}A" for letter in "hcaebdgf"]
    topics, partitions = [topic(f"t-{each[0]}", each) for each in ids], [partition(each, 0, 1) for each in ids]
    history = Log().batch(*topics, *partitions).history()
    assert [row.topic for row in history.intervals()] == [f"t-{each[0]}" for each in sorted(ids)]


def test_a_topic_under_its_old_name_is_another_topic():
    log = Log().batch(topic("t", A), partition(A, 0, 1)).batch(remove(A)).batch(topic("t", B), partition(B, 0, 1))
    history = log.history()
    assert A not in history.at(3000).image.by_id
    assert history.at(3000).image.by_name["t"].id == B
    both = Log().batch(topic("t", A), partition(A, 0, 1)).batch(remove(A), topic("t", B), partition(B, 0, 1)).history()
    assert [change.kind for change in both.changes(["t"], 0, 1)] == ["replaced"]
    assert list(both.at(2000).image.by_id) == [B]


def test_a_metadata_transaction_is_seen_at_its_end_or_never():
    log = Log().batch(BEGIN, topic("t", A)).batch(partition(A, 0, 1)).batch(partition(A, 1, 1), END)
    log.batch(BEGIN, topic("u", B), partition(B, 0, 1)).batch(ABORT)
    history = log.history()
    assert history.at(2500) is None
    assert history.at(3000).image.by_name["t"].partitions == 2
    assert history.at(3000).at.offset == 4
    assert history.topic_name(B) is None


def test_the_racks_follow_the_brokers_but_a_cached_hash_does_not():
    log = Log().batch(broker(1, "r1")).batch(topic("t", A), partition(A, 0, 1)).batch(broker(1, "r9"))
    history = log.history()
    old, new = Topic("t", A, 1, (("r1",),), ((1,),)), Topic("t", A, 1, (("r9",),), ((1,),))
    assert history.at(3000).image.by_name["t"] == new
    assert history.newest_matching_hash(hash_of(new), ["t"], 9000).image.by_name["t"] == new
    stale = history.newest_matching_hash(hash_of(old), ["t"], 9000)
    assert stale.version == 2
    assert stale.image.by_name["t"] == old
    assert stale.image.by_id[A] == old


def test_the_racks_of_every_partition_follow_the_brokers():
    log = Log().batch(broker(1, "r1"), broker(2, "r2"))
    log.batch(topic("t", A), partition(A, 0, 1, 2), partition(A, 1, 2, 1)).batch(broker(2, "r9"))
    assert log.history().at(3000).image.by_name["t"].racks == (("r1", "r9"), ("r9", "r1"))


def test_a_record_about_the_topic_refreshes_the_cached_hash():
    log = Log().batch(broker(1, "r1")).batch(topic("t", A), partition(A, 0, 1)).batch(broker(1, "r9"))
    history = log.batch(change(A, 0, isr=[1])).history()
    old = Topic("t", A, 1, (("r1",),), ((1,),))
    found = history.newest_matching_hash(hash_of(old), ["t"], 9000)
    assert found.version == 2, "after the refresh (version 3) the old racks cannot be in the cache"


def test_the_newest_image_that_matches_is_not_always_the_newest():
    log = Log().batch(topic("t", A), partition(A, 0, 1)).batch(partition(A, 1, 1)).batch(topic("u", B))
    history = log.batch(partition(B, 0, 1)).history()
    one = Topic("t", A, 1, ((),), ((1,),))
    assert history.newest_matching_hash(hash_of(one), ["t", "gone"], 9000).version == 0
    assert history.newest_matching_hash(hash_of(one), ["t", "gone"], 500) is None
    assert history.newest_matching_hash(hash_of(one), ["t", "gone"], 500, slack_ms=500).version == 0
    assert history.newest_matching_hash(0, ["gone"], 2500).version == 0
    assert history.newest_matching_hash(12345, ["t"], 9000) is None


def test_window_lists_each_image_that_held_in_it():
    log = Log().batch(topic("t", A), partition(A, 0, 1)).batch(topic("u", B), partition(B, 0, 1))
    history = log.batch(partition(A, 1, 1)).history()
    assert [image.version for image in history.window(1500, 9000)] == [0, 1, 2]
    assert [image.version for image in history.window(1500, 9000, ["t"])] == [0, 2]
    assert history.window(0, 500) == []


def test_group_configs_are_dynamic():
    log = Log().batch(config("streams.num.standby.replicas", "1")).batch(config("x", "1", "t", 2))
    history = log.batch(config("streams.num.standby.replicas", None)).history()
    assert history.config(32, "g", 1) == {"streams.num.standby.replicas": "1"}
    assert history.config(32, "g", 2) == {}


def test_a_topic_takes_its_configs_with_it():
    log = Log().batch(topic("t", A), config("x", "1", "t", 2), partition(A, 0, 1)).batch(config("y", "2", "t", 2))
    history = log.batch(remove(A)).batch(topic("t", B), partition(B, 0, 1)).history()
    assert [history.config(2, "t", version) for version in range(4)] == [{"x": "1"}, {"x": "1", "y": "2"}, {}, {}]
    log = Log().batch(topic("t", A), partition(A, 0, 1))
    log.batch(config("x", "1", "t", 2), remove(A), topic("t", B), config("y", "2", "t", 2), partition(B, 0, 1))
    assert log.history().config(2, "t", 1) == {"y": "2"}


def test_a_log_that_starts_in_the_middle_says_so():
    history = Log(start=50).batch(partition(A, 3, 1), remove(B), END).history()
    assert not history.complete
    assert [gap.cause.split(":")[0] for gap in history.gaps] == [
        "the log begins at offset 50",
        f"partition 3 of topic id {A}, which no record created",
        f"deletion of topic id {B}, which no record created",
        "the end of a metadata transaction whose beginning was not seen",
    ]
    assert history.at(9000) is None


def test_overlapping_dumps_change_nothing():
    log = Log().batch(topic("t", A), partition(A, 0, 1)).batch(partition(A, 1, 1))
    fold = MetadataLog()
    for record in [*log.records, *log.records]:
        fold.apply(record)
    assert list(fold.finish().intervals()) == list(log.history().intervals())


def test_versions_share_what_did_not_change():
    log = Log().batch(*(topic(f"t{i}", f"{i:022d}") for i in range(1000)))
    for i in range(5000):
        log.batch(config("c", str(i), "g"))
    history = log.history()
    assert len(history) == 5001
    assert history.version(0).image.by_name["t7"] is history.version(5000).image.by_name["t7"]


def test_only_a_change_of_the_leader_leads_a_log_of_groups_anew():
    log = Log().batch(topic(GROUP_LOG, A), partition(A, 0, 1, 2), topic("t", B), partition(B, 0, 1, 2))
    log.batch(change(A, 0, isr=[1])).batch(change(A, 0, leader=-2)).batch(change(B, 0, leader=2))
    assert not log.history().brokers.is_led_anew(GROUP_LOG, 0, 0, 10**6)
    brokers = log.batch(change(A, 0, leader=-1)).history().brokers
    assert brokers.is_led_anew(GROUP_LOG, 0, 4_000, 5_000)
    assert not brokers.is_led_anew(GROUP_LOG, 0, 5_000, 10**6)
    assert not brokers.is_led_anew(GROUP_LOG, 1, 0, 10**6)


def test_a_broker_that_registers_again_behind_the_first_records_of_a_log_has_moved_no_replica():
    """Its rack was not known before; the topic may have had it all along."""
    log = Log(50).batch(topic("a", A), partition(A, 0, 1, 2)).batch(broker(1, "r1")).batch(broker(2, "r2"))
    log.batch(partition(A, 1, 1, 2)).batch(broker(2, "r3"))
    history = log.history()
    assert [change.kind for change in history.changes(["a"], 0, 9)] == ["grown", "moved"]
    assert [(row.partitions, row.racks) for row in history.intervals(["a"])] == [
        (1, ()),
        (1, (("r1", "r2"),)),
        (2, (("r1", "r2"), ("r1", "r2"))),
        (2, (("r1", "r3"), ("r1", "r3"))),
    ]

"""Requests of every sort, sensible and not, as hypothesis strategies of (api, version, data)."""

from typing import Any

from hypothesis import strategies as st

from coordinator_core.groups import consumer_protocol
from coordinator_core.wire.embedded import encode_blob
from tests.core.coordinator.clients import GROUP

MEMBERS = st.sampled_from(["m1", "m2", "m3"])
INSTANCES = st.sampled_from([None, None, "i1", "i2"])
TOPIC_SETS = st.sampled_from([["a"], ["a", "b"], ["b", "missing"], []])
REGEXES = st.sampled_from([None, None, "a.*", "b|c", ""])
PARTITIONS = st.one_of(
    st.none(),
    st.just([]),
    st.lists(
        st.fixed_dictionaries(
            {
                "topicId": st.sampled_from(["a".ljust(22, "A"), "b".ljust(22, "A")]),
                "partitions": st.lists(st.integers(0, 5), max_size=4),
            }
        ),
        max_size=2,
    ),
)


def _consumer_data(draw: Any) -> dict[str, Any]:
    epoch = draw(st.sampled_from([0, 0, 0, 1, 2, 3, 4, 5, 6, -1, -2]))
    joins = epoch == 0
    names = draw(TOPIC_SETS) if joins or draw(st.booleans()) else None
    return {
        "groupId": GROUP,
        "memberId": draw(MEMBERS),
        "memberEpoch": epoch,
        "instanceId": draw(INSTANCES),
        "rackId": draw(st.sampled_from([None, "r1"])),
        "rebalanceTimeoutMs": draw(st.sampled_from([5_000, 60_000])) if joins else -1,
        "subscribedTopicNames": names,
        "subscribedTopicRegex": draw(REGEXES),
        "serverAssignor": draw(st.sampled_from([None, "uniform", "range"])),
        "topicPartitions": [] if joins else draw(PARTITIONS),
    }


@st.composite
def _consumer(draw: st.DrawFn) -> tuple[str, int, dict[str, Any]]:
    return "ConsumerGroupHeartbeat", 1, _consumer_data(draw)


def metadata(topics: list[str], version: int = 3) -> bytes:
    """A consumer's subscription."""
    fields = {"topics": topics, "userData": None, "ownedPartitions": [], "generationId": -1, "rackId": None}
    kept = ("topics", "userData", "ownedPartitions", "generationId", "rackId")[: version + 2]
    return encode_blob(consumer_protocol.SUBSCRIPTION, version, {name: fields[name] for name in kept})


@st.composite
def _classic(draw: st.DrawFn) -> tuple[str, int, dict[str, Any]]:
    api = draw(st.sampled_from(["JoinGroup", "JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup"]))
    member_id = draw(st.sampled_from(["", "m1", "m2", "client-1"]))
    instance_id, generation = draw(INSTANCES), draw(st.integers(-1, 5))
    if api == "JoinGroup":
        names = draw(st.sampled_from([["range"], ["range", "roundrobin"], ["roundrobin", "range"], ["x"]]))
        subscription = metadata(draw(TOPIC_SETS), draw(st.integers(0, 3)))
        data = {
            "groupId": GROUP,
            "sessionTimeoutMs": draw(st.sampled_from([6_000, 45_000])),
            "rebalanceTimeoutMs": draw(st.sampled_from([5_000, 60_000])),
            "memberId": member_id,
            "groupInstanceId": instance_id,
            "protocolType": draw(st.sampled_from(["consumer", "consumer", "connect"])),
            "protocols": [{"name": name, "metadata": subscription} for name in names],
        }
        return api, draw(st.sampled_from([2, 5, 9])), data
    common = {"groupId": GROUP, "generationId": generation, "memberId": member_id, "groupInstanceId": instance_id}
    if api == "SyncGroup":
        return api, 5, {**common, "assignments": [{"memberId": member_id, "assignment": b""}]}
    if api == "Heartbeat":
        return api, 4, common
    return api, 5, {"groupId": GROUP, "members": [{"memberId": member_id, "groupInstanceId": instance_id}]}


@st.composite
def _offsets(draw: st.DrawFn) -> tuple[str, int, dict[str, Any]]:
    api, version = draw(st.sampled_from([("OffsetCommit", 9), ("OffsetCommit", 2), ("TxnOffsetCommit", 5)]))
    partitions = [{"partitionIndex": draw(st.integers(0, 5)), "committedOffset": draw(st.integers(-1, 9))}]
    data = {
        "groupId": GROUP,
        "memberId": draw(st.sampled_from(["", "m1", "m2"])),
        "generationIdOrMemberEpoch": draw(st.integers(-1, 5)),
        "generationId": draw(st.integers(-1, 5)),
        "groupInstanceId": draw(INSTANCES),
        "topics": [{"name": "a", "topicId": "a".ljust(22, "A"), "partitions": partitions}],
    }
    return api, version, data | {"transactionalId": "t", "producerId": 1, "producerEpoch": 0}


consumer_request = _consumer()
classic_request = _classic()
offset_request = _offsets()

_ANYTHING = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5), st.binary(max_size=8)
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)),
    max_leaves=4,
)


@st.composite
def _spoilt(draw: st.DrawFn) -> tuple[str, int, Any]:
    api, version, data = draw(st.one_of(consumer_request, classic_request, offset_request))
    spoilt = dict(data)
    for name in draw(st.lists(st.sampled_from(sorted(data)), max_size=2)):
        if draw(st.booleans()):
            spoilt[name] = draw(_ANYTHING)
        else:
            spoilt.pop(name, None)
    return api, draw(st.one_of(st.just(version), st.integers(-1, 12))), draw(st.one_of(st.just(spoilt), _ANYTHING))


any_request = st.one_of(_spoilt(), st.tuples(st.text(max_size=5), st.integers(0, 9), _ANYTHING))

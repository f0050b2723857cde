"""Requests drawn from the shapes that the coordinator itself checks: every field with every sort of value."""

from typing import Any

from hypothesis import strategies as st

from coordinator_core.coordinator.request_fields import RequestField, RequestShape, shape_of
from coordinator_core.record_fields import coordinator_requests

GROUPS = ("consumers", "classics", "shares", "threads", "workers", "new")
MEMBERS = ("m1", "m2", "m3")

VERSIONS = {
    "JoinGroup": range(10),
    "SyncGroup": range(7),
    "Heartbeat": range(6),
    "LeaveGroup": range(7),
    "ConsumerGroupHeartbeat": range(3),
    "ShareGroupHeartbeat": range(3),
    "AlterShareGroupOffsets": range(2),
    "DeleteShareGroupOffsets": range(2),
    "StreamsGroupHeartbeat": range(2),
    "OffsetCommit": range(12),
    "TxnOffsetCommit": range(7),
    "OffsetFetch": range(7, 12),
    "OffsetDelete": range(2),
    "ConnectGroupHeartbeat": range(2),
    "ConnectGroupPrepareAssignment": range(2),
    "ConnectGroupInstallAssignment": range(2),
}
SHAPES = {
    api: (shape_of(getattr(coordinator_requests, f"{api}Request")), versions) for api, versions in VERSIONS.items()
}

_TOPICS = ("in", "store", "range", "stream", "sessioned")
_NAMED = {"groupId": GROUPS, "memberId": (*MEMBERS, ""), "name": _TOPICS, "topicName": _TOPICS}
_STRINGS = ("", " ", "a", "0", "in", "store", "in.*", "(", "x" * 40_000, "\ud800", "é", "A" * 22, "in".ljust(22, "A"))
_NUMBERS = (-(2**31) - 1, -(2**31), -3, -2, -1, 0, 1, 2, 3, 7, 100, 2**31 - 1, 2**31, 2**63)
_SUBSCRIPTION = bytes.fromhex("0003000000010002696effffffff00000000ffffffffffff")
_BYTES = (b"", b"\x00", b"\x00\x03", b"\xff" * 9, _SUBSCRIPTION, _SUBSCRIPTION[:-3])
_ANYTHING = st.sampled_from([None, True, 1.5, -7, "", "x", b"x", [], [None], [[]], [{}], {}, {"a": 1}, (1,)])


def _value(field: RequestField) -> st.SearchStrategy[Any]:
    """Values of the field's type, sensible and not."""
    if field.elements is not None:
        inner = data_of(field.elements)
        lists = st.lists(inner, max_size=3)
        return lists if field.fits([]) else inner
    if field.fits([]):
        strings = field.fits(["a"])
        return st.lists(st.sampled_from(_STRINGS if strings else _NUMBERS), max_size=3)
    if field.fits("a"):
        return st.sampled_from((*_NAMED.get(field.name, ()), *_NAMED.get(field.name, ()), *_STRINGS))
    if field.fits(b""):
        return st.sampled_from(_BYTES)
    return st.booleans() if field.fits(True) else st.sampled_from(_NUMBERS)


def data_of(shape: RequestShape) -> st.SearchStrategy[dict[str, Any]]:
    """A structure of the shape, in which fields may be absent, null or of any other type."""
    given = {}
    for field in shape.fields:
        null = st.none() if field.nullable else _value(field)
        given[field.name] = st.one_of(*[_value(field)] * 12, *[null] * 6, _ANYTHING)
    required = st.fixed_dictionaries(given)
    return st.one_of(*[required] * 3, st.fixed_dictionaries({}, optional=given))


FITTING = {"memberEpoch": range(-2, 6), "generationId": range(-1, 4), "rebalanceTimeoutMs": (5_000,)}
"""Values with which a request gets further than its validation."""


@st.composite
def requests(draw: st.DrawFn, beginning: str = "") -> tuple[str, int, Any]:
    """API (whose name begins so), version and data of a request; now and then with an epoch that fits."""
    api = draw(st.sampled_from(sorted(name for name in SHAPES if name.startswith(beginning))))
    shape, versions = SHAPES[api]
    data = draw(data_of(shape))
    for name in sorted(FITTING.keys() & data.keys()):
        if draw(st.booleans()):
            data[name] = draw(st.sampled_from(FITTING[name]))
    return api, draw(st.sampled_from(versions)), data

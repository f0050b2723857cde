"""Random records of one group for properties: any type, any order, few ids so that records meet."""

from hypothesis import strategies as st

from coordinator_core.records import CoordinatorRecord
from tests.core.builders import GroupLog, classic_member

member_ids = st.sampled_from(["a", "b", "c"])
epochs = st.integers(-2, 6)
partitions = st.dictionaries(
    st.sampled_from(["topic-id-1-___________", "topic-id-2-___________"]),
    st.lists(st.integers(0, 4), unique=True, max_size=3),
    max_size=2,
)
TOMBSTONES = (2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 15, 16, 17, 19, 20, 21, 22, 23)


@st.composite
def logs(draw: st.DrawFn) -> list[CoordinatorRecord]:
    log = GroupLog()
    return [draw(_record(log)) for _ in range(draw(st.integers(0, 25)))]


@st.composite
def _record(draw: st.DrawFn, log: GroupLog) -> CoordinatorRecord:
    member_id, epoch, units = draw(member_ids), draw(epochs), draw(partitions)
    makers = (
        lambda: log.tombstone(draw(st.sampled_from(TOMBSTONES)), memberId=member_id, regularExpression="o.*"),
        lambda: log.classic(epoch, [classic_member(each, b"\x00", b"\xff") for each in draw(st.sets(member_ids))]),
        lambda: log.member(member_id, instanceId=draw(st.none() | st.just("i")), rackId=draw(st.none() | st.just("r"))),
        lambda: log.epoch(epoch),
        lambda: log.target_epoch(epoch),
        lambda: log.target(member_id, units),
        lambda: log.current(member_id, epoch, units, draw(partitions), state=draw(st.integers(0, 3))),
        lambda: log.regex("o.*", ["orders"]),
        lambda: log.share_member(member_id),
        lambda: log.record(11, {"epoch": epoch, "metadataHash": 1}),
        lambda: log.share_current(member_id, epoch, units),
        lambda: log.share_state({"topic-id-1-___________": ("orders", [0])}),
        lambda: log.streams_member(member_id, userEndpoint=None),
        lambda: log.streams_epoch(epoch),
        lambda: log.topology(),
        lambda: log.streams_target(member_id, {"0": [1, 2]}),
        lambda: log.streams_current(
            member_id, epoch, {"0": [1]}, {"1": [0]}, {"0": [2]}, state=draw(st.integers(0, 4))
        ),
        lambda: log.record(99, {"unknown": 1}),
    )
    return draw(st.sampled_from(makers))()

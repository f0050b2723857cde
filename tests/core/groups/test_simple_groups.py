"""A group that only committed, and whose last offset was removed."""

import pytest

from coordinator_core.groups.proven_state import GroupThen
from coordinator_core.groups.shard import CoordinatorShard
from coordinator_core.groups.simple_groups import without_forgotten
from coordinator_core.records import CoordinatorRecord, LogPosition, RecordType

COMMIT = {"offset": 1, "leaderEpoch": -1, "metadata": "", "commitTimestamp": 0}


def shard(*values: dict[str, object] | None, with_group: bool = False) -> GroupThen:
    made = CoordinatorShard()
    for offset, value in enumerate(values):
        key = {"group": "g", "topic": "t", "partition": 0}
        made.apply(CoordinatorRecord(LogPosition(0, offset, offset), RecordType.OFFSET_COMMIT, key, value, 3, offset))
    if with_group:
        empty = {"protocolType": "consumer", "generation": 2, "protocol": None, "leader": None, "members": []}
        at = LogPosition(0, 9, 9)
        made.apply(CoordinatorRecord(at, RecordType.GROUP_METADATA, {"group": "g"}, empty, 3, 9))
    return GroupThen(made.group("g"), made.offsets_of("g"))


@pytest.mark.parametrize(("oldest", "is_there"), [(None, False), (7, False), (21, False), (22, True), (30, True)])
def test_a_coordinator_before_4_0_forgets_it_without_a_record(oldest: int | None, is_there: bool) -> None:
    assert bool([*without_forgotten([shard(COMMIT, None)], lambda: oldest)]) is is_there


def test_others_are_there() -> None:
    for then in (shard(COMMIT), shard(COMMIT, None, COMMIT), shard(COMMIT, None, with_group=True)):
        assert [*without_forgotten([then], lambda: None)] == [then]

"""Whatever the log says, in whatever order: replay does not fail, and what it kept can be stored and described."""

import json

from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.groups.describe import Surroundings, describe
from coordinator_core.groups.group import Group
from coordinator_core.groups.offsets import GroupOffsets
from coordinator_core.records import CoordinatorRecord
from tests.core.groups.records import logs
from tests.core.groups.stored_groups import decode_group, encode_group


def group_of(records: list[CoordinatorRecord], *, from_start: bool) -> Group:
    group = Group("g", from_start=from_start)
    for record in records:
        for seen in group.apply(record):
            assert seen.group_id == "g"
            assert seen.at == record.at
    return group


@given(logs(), st.booleans())
def test_a_group_survives_its_stored_form(records: list[CoordinatorRecord], from_start: bool) -> None:
    group = group_of(records, from_start=from_start)
    again = decode_group(encode_group(group))
    assert again == group
    if group.state is not None and again.state is not None:
        assert list(again.state.members) == list(group.state.members), "the order of members means something"


@given(logs(), st.integers(0, 25))
def test_a_stored_group_goes_on_as_if_it_had_not_been_stored(records: list[CoordinatorRecord], night: int) -> None:
    stored = decode_group(encode_group(group_of(records[:night], from_start=True)))
    for record in records[night:]:
        stored.apply(record)
    assert stored == group_of(records, from_start=True)


@given(logs())
def test_every_state_can_be_described(records: list[CoordinatorRecord]) -> None:
    described = describe(group_of(records, from_start=False), GroupOffsets(), Surroundings())
    assert described["listing"]["groupId"] == "g"
    json.dumps(described)

"""A group of workers that two logs show at once, of which one ends before the record of the move."""

import pytest

from coordinator_core.groups.certainty import CERTAIN
from coordinator_core.groups.classic.state import ClassicGroup
from coordinator_core.groups.connect.state import ConnectGroup
from coordinator_core.groups.describe import CERTAIN_GROUP, POSSIBLY_THERE, certainty_label
from coordinator_core.groups.group import Group
from coordinator_core.groups.moved_groups import moved_in_words, without_moved
from coordinator_core.groups.offsets import GroupOffsets
from coordinator_core.groups.proven_state import GroupThen
from coordinator_core.records import Family


def classic(generation: int | None, protocol_type: str = "connect", group_id: str = "workers") -> GroupThen:
    return GroupThen(Group(group_id, ClassicGroup(generation, protocol_type)), GroupOffsets())


def connect(epoch: int | None, target: int | None, group_id: str = "workers") -> GroupThen:
    state = ConnectGroup(group_epoch=epoch, assignment_epoch=target)
    return GroupThen(Group(group_id, state, family=Family.CONNECT), GroupOffsets())


@pytest.mark.parametrize(
    ("generation", "epoch", "target", "certain"),
    [
        (8, 17, 16, [Family.CONNECT]),
        (18, 17, 16, [Family.GROUP]),
        (17, 17, 16, []),  # it moved back at 16, and its workers joined again; or moved there at 17
        (16, 17, 16, []),
        (8, 9, None, []),
        (None, 9, 9, []),
        (8, None, None, []),
    ],
)
def test_the_log_with_the_higher_number_shows_where_a_group_lives(
    generation: int | None, epoch: int | None, target: int | None, certain: list[Family]
) -> None:
    shown = list(without_moved([classic(generation), connect(epoch, target)]))
    assert [then.group.family for then in shown if then.certainty == CERTAIN] == certain
    labels = [certainty_label(then.group, then.certainty) for then in shown]
    assert labels == [CERTAIN_GROUP] * len(certain) + [POSSIBLY_THERE] * (2 - len(certain))
    doubted = [then for then in shown if then.certainty.may_have_moved]
    assert all(then.group.state is None and then.is_possible for then in doubted)


@pytest.mark.parametrize(
    "other", [classic(8, "consumer"), classic(8, group_id="consumers"), connect(17, 17, group_id="consumers")]
)
def test_other_groups_are_as_they_were(other: GroupThen) -> None:
    """A group of consumers with the name of the workers is another group."""
    given = [other, connect(17, 17)]
    assert list(without_moved(given)) == given


def test_the_reason_names_the_group_and_both_logs() -> None:
    said = moved_in_words("workers")
    assert "'workers'" in said
    assert "__consumer_offsets" in said
    assert "__worker_offsets" in said

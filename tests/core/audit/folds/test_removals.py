"""Why an offset was removed, where its age alone does not tell: an empty classic group loses all of them at once."""

import pytest

from coordinator_core.audit.folds.removals import (
    DELETED,
    EXPIRED,
    EXPIRED_OR_DELETED,
    GROUP_DELETED,
    GROUP_ENDED,
    TOPIC_DELETED,
    EmptySpans,
)
from coordinator_core.records import LogPosition
from tests.core.audit.histories import at, epoch


@pytest.mark.parametrize("members", [(), None])
def test_a_young_offset_of_a_group_that_was_empty_for_a_minute_may_have_expired(
    members: tuple[str, ...] | None,
) -> None:
    empty = EmptySpans([epoch(3, at(10), group_type="CLASSIC", members=members)])
    opened = at(10).timestamp_ms
    for later_ms, changed in ((59_999, False), (60_000, True)):
        removed = LogPosition(0, 12, opened + later_ms)
        expected = {DELETED: EXPIRED_OR_DELETED, GROUP_DELETED: GROUP_ENDED} if changed else {}
        for how in (DELETED, GROUP_DELETED, EXPIRED, TOPIC_DELETED, GROUP_ENDED, EXPIRED_OR_DELETED):
            assert empty.how(how, removed) == expected.get(how, how)


def test_offsets_of_groups_with_members_or_epochs_expire_by_their_own_age() -> None:
    removed = LogPosition(0, 12, at(10).timestamp_ms + 3_600_000)
    for rows in (
        [],
        [epoch(3, at(10), group_type="CLASSIC", members=("m",))],
        [epoch(3, at(10), group_type="CONSUMER", members=())],
        [epoch(3, at(10), group_type="CLASSIC", members=(), ended=at(11))],
        [epoch(3, at(13), group_type="CLASSIC", members=())],
    ):
        assert EmptySpans(rows).how(DELETED, removed) == DELETED

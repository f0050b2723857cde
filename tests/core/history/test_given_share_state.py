"""What is missing of the share state log: it is named, and what it may have said is not known."""

import pytest

from coordinator_core.groups.share.state_log import SharePartition, ShareStateLog
from coordinator_core.history.knowledge import GivenShareState, Knowledge
from coordinator_core.history.lost_records import LostRecords
from coordinator_core.history.share_partitions import OpenShareHistory, SharePartitionFold
from tests.core.history.test_share_partitions import WHOLE
from tests.core.share_log import TOPIC_ID, ShareLog

PLACE = ("__share_group_state", 0)
SHARED = SharePartition("g", TOPIC_ID, 0)


def test_what_is_missing_is_named() -> None:
    assert GivenShareState({0, 1}, 2).missing() == []
    assert Knowledge(share_state=lambda: GivenShareState({0, 1}, 2)).about_share_groups() == []
    (nothing,) = Knowledge(share_state=lambda: GivenShareState(set(), 2)).about_share_groups()
    assert nothing.startswith("the share state log (__share_group_state) was not given")
    (part,) = GivenShareState({1}, 8).missing()
    assert part.startswith("7 of 8 partitions of __share_group_state were not given (0, 2, 3, 4, 5 and others): ")
    given = GivenShareState({0, 1}, 2)
    given.note_lost(0, [])
    given.note_lost(1, [(3, 4)])
    given.note_unreadable(0, 7)
    given.note_unreadable(0, 9)
    lost, unreadable = given.missing()
    assert lost.endswith(": __share_group_state-1 offsets 3 to 4")
    assert unreadable.endswith(": __share_group_state-0 from offset 7 on")


@pytest.mark.parametrize(
    ("given", "doubtful", "said"),
    [
        (GivenShareState({0, 1}), [2], "in partition 2 or higher, if there are any, are not known"),
        (GivenShareState({-1}, 2, is_placed=False), [2], "do not tell which partitions"),
        (GivenShareState({-1}, is_placed=False), [0], "do not tell which partitions"),
    ],
)
def test_where_nothing_tells_all_partitions_some_may_be_missing(
    given: GivenShareState, doubtful: list[int], said: str
) -> None:
    (reason,) = given.missing()
    assert said in reason
    assert given.doubtful == doubtful
    assert not ShareStateLog(lost={*given.doubtful}).knows(SHARED)


def test_a_log_that_does_not_tell_its_partition_is_the_only_one() -> None:
    assert GivenShareState({-1}, 1, is_placed=False).missing() == []


def test_after_lost_records_only_what_later_ones_say_is_known() -> None:
    made, log = ShareLog(), ShareStateLog()
    log.apply(made.snapshot(0))
    assert log.knows(SHARED)
    log.lose(0)
    assert (log.partitions, log.knows(SHARED)) == ({}, False)
    log.apply(made.update(-1, [(0, 3, 2, 1)], 4))
    assert not log.knows(SHARED)  # the update leaves the start as it was
    log.apply(made.snapshot(4))
    assert log.knows(SHARED)


def test_what_lasts_over_lost_records_is_in_doubt() -> None:
    fold = SharePartitionFold(OpenShareHistory("g"), None, WHOLE)
    fold.feed(ShareLog().snapshot())
    (row,) = fold.open_rows()
    whole = LostRecords({PLACE: [(0, row.since.offset)], ("__consumer_offsets", 0): [(50, 60)]})
    assert whole.as_known(row) == row
    doubted = LostRecords({PLACE: [(50, 60)]}).as_known(row)
    assert doubted is not None
    assert (doubted.history_complete, doubted.missing) == (False, "records between offsets 50 and 60")

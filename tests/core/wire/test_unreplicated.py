"""Which records of copies were never replicated: the leader epochs decide, not the order of the copies."""

import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.wire.unreplicated import CopiedRecords, tails


def copy(*runs: tuple[int, int, int], clock: int = 0) -> CopiedRecords:
    """A copy of runs of offsets (first, end, epoch); the time of a record tells who wrote it."""
    rows = [
        (offset, epoch, clock + 1_000 * epoch + offset) for first, end, epoch in runs for offset in range(first, end)
    ]
    return CopiedRecords(*(np.array(column, np.int64) for column in zip(*rows, strict=True)))


LIVE = copy((0, 100, 5), (100, 106, 7))


def test_a_tail_that_was_never_replicated_ends_where_the_next_leader_begins() -> None:
    dead = copy((0, 121, 5))
    assert tails([dead, LIVE]) == [100, None]
    assert tails([LIVE, dead]) == [None, 100]


def test_the_live_copy_may_be_shorter_than_the_dead_one() -> None:
    follower, dead = copy((0, 100, 5), (100, 103, 7)), copy((0, 140, 5))
    for copies in itertools.permutations([LIVE, follower, dead]):
        found = dict(zip(map(id, copies), tails(copies), strict=True))
        assert [found[id(each)] for each in (LIVE, follower, dead)] == [None, None, 100]


def test_a_tail_of_a_leader_between_is_none_of_the_newest_leader() -> None:
    """Epoch 6 began at 100 at a broker that lacked what the next leader kept of epoch 5."""
    between, newest = copy((0, 100, 5), (100, 104, 6)), copy((0, 105, 5), (105, 107, 7))
    assert tails([between, newest]) == [100, None]


def test_a_longer_copy_of_the_same_leader_has_no_tail() -> None:
    assert tails([copy((0, 90, 5)), copy((0, 100, 5))]) == [None, None]
    assert tails([copy((0, 90, 5)), LIVE]) == [None, None]


def test_what_compaction_took_of_the_newest_copy_begins_no_epoch_later() -> None:
    compacted = CopiedRecords(*(column[[3, 50, 99, 104, 105]] for column in LIVE))
    assert tails([compacted, LIVE]) == [None, None]
    assert tails([copy((0, 121, 5)), compacted]) == [105 - 1, None]


def test_logs_of_two_clusters_are_left_as_they_are() -> None:
    assert tails([copy((0, 121, 5), clock=7), LIVE]) == [None, None]
    assert tails([copy((0, 121, 5)), copy((0, 40, 9))]) == [None, None]
    assert tails([copy((0, 121, -1)), LIVE]) == [None, None]


@given(st.data())
def test_replicas_lose_what_the_leaders_after_them_did_not_have(data: st.DataObject) -> None:
    """Brokers that lead in turn: each has a prefix of the log of the leader before, and may have a tail beside it."""
    true: list[tuple[int, int]] = [(offset, 0) for offset in range(data.draw(st.integers(1, 9)))]
    copies: list[tuple[list[tuple[int, int]], int | None]] = []
    for epoch in range(1, data.draw(st.integers(2, 5))):
        tail = [(len(true) + number, epoch - 1) for number in range(data.draw(st.integers(0, 4)))]
        copies.append(([*true, *tail], len(true) if tail else None))
        true += [(len(true) + number, epoch) for number in range(data.draw(st.integers(1, 4)))]
    copies.append((true, None))
    order = data.draw(st.permutations(copies))
    made = [
        CopiedRecords(
            *(np.array(column, np.int64) for column in zip(*rows, strict=True)), np.zeros(len(rows), np.int64)
        )
        for rows, _ in order
    ]
    assert tails(made) == [upto for _, upto in order]

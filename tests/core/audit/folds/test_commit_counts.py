"""Commit records over time: the interval follows from the times alone, and short intervals add up to long ones."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from coordinator_core.audit.folds.commit_times import (
    LENGTHS_MS,
    MOST_INTERVALS,
    CommitCount,
    CommitCountFold,
    coarsened,
    fitting_length,
)

TIMES = st.lists(st.integers(0, 40 * 86_400_000), min_size=1, max_size=50)


def counted(times: list[int]) -> list[CommitCount]:
    fold = CommitCountFold()
    for time in times:
        fold.feed(time)
    return fold.rows()


def test_each_length_divides_the_next_one():
    assert all(longer % shorter == 0 for shorter, longer in pairwise(LENGTHS_MS))


@given(TIMES)
def test_the_order_of_the_times_does_not_matter(times):
    length = fitting_length(min(times), max(times))
    assert counted(times) == counted(sorted(times))
    assert counted(times) == list(coarsened([CommitCount(time, 1, 1) for time in times], length))
    assert len(counted(times)) <= MOST_INTERVALS


@given(TIMES, st.sampled_from(LENGTHS_MS))
def test_nothing_is_lost_where_intervals_become_longer(times, length):
    counts = counted(times)
    longer = coarsened(counts, max(length, counts[0].length_ms))
    assert sum(each.records for each in longer) == len(times)
    assert all(each.since_ms % each.length_ms == 0 for each in longer)


def test_records_without_a_time_are_not_counted():
    assert counted([-1, 5_000, -1]) == [CommitCount(5_000, 1_000, 1)]

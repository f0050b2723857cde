"""What the offsets of a moment of the logs of groups mean in other logs."""

from collections.abc import Sequence
from functools import partial

from coordinator_core.groups.certainty import LogGaps
from coordinator_core.records import CONNECT_LOG, GROUP_LOG
from jobs.queries.moment_times import ANY_LATER_MS, LogEnd, MomentTimes
from jobs.relations.moment import AsOf


def test_no_share_state_is_that_of_an_offset_whose_record_has_no_time() -> None:
    """Records of share state in the same dump have no times, either."""
    times = MomentTimes.of(AsOf(offsets={0: 5}), [LogEnd(0, LogGaps(), asked=5, left_out=5, last=4)])
    assert not times.is_timed
    assert times.sure_ms is not None
    assert times.sure_ms < -1
    assert MomentTimes.of(AsOf(), [LogEnd(0, LogGaps(), last=4)]).sure_ms is None


def test_an_offset_that_the_logs_do_not_have_is_of_no_known_time() -> None:
    """Of the topics at the moment only those are known that do not change any more."""
    cut = LogEnd(0, LogGaps(), asked=5, left_out=5, left_out_ms=5_000, last=4, last_ms=4_000)
    known, absent = (MomentTimes.of(AsOf(offsets=offsets), [cut]) for offsets in ({0: 5}, {0: 5, 1: 9}))
    assert (known.topics_ms, known.upto_ms) == (4_000, 4_000)
    assert (absent.topics_ms, absent.upto_ms) == (4_000, ANY_LATER_MS)


def test_an_offset_is_one_of_the_group_log_and_the_workers_log_ends_at_its_time() -> None:
    """``__worker_offsets`` has partitions with the same numbers: an offset of the other log says nothing there."""
    asked = AsOf(offsets={0: 5})
    cut = LogEnd(0, LogGaps(), asked=5, left_out=5, left_out_ms=5_000, last=4, last_ms=4_000)
    read: dict[str, AsOf] = {}

    def ends_in(topics: Sequence[str], at: AsOf, given: tuple[str, ...]) -> list[LogEnd]:
        read.update(dict.fromkeys(topics, at))
        return [cut for topic in topics if topic in given]

    times = MomentTimes.looked_up(asked, partial(ends_in, given=(GROUP_LOG, CONNECT_LOG)))
    assert times == MomentTimes.of(asked, [cut])
    assert read == {GROUP_LOG: asked, CONNECT_LOG: AsOf(4_999)}
    assert MomentTimes.looked_up(asked, partial(ends_in, given=(CONNECT_LOG,))) == times, "the only log that is there"
    assert read[CONNECT_LOG] == asked


def test_records_of_workers_that_may_be_later_than_the_moment_are_untimed() -> None:
    """The record below the offset is gone: the moment was between the records of 2 s and of 9 s."""
    asked = AsOf(offsets={0: 5})
    cut = LogEnd(0, LogGaps(), asked=5, left_out=8, left_out_ms=9_000, last=1, last_ms=2_000)

    def untimed(last_ms: int | None) -> frozenset[int]:
        ends = {GROUP_LOG: cut, CONNECT_LOG: LogEnd(3, LogGaps(), last_ms=last_ms)}
        return MomentTimes.looked_up(asked, lambda topics, at: [ends[topic] for topic in topics]).untimed

    assert [untimed(last_ms) for last_ms in (None, 1_999, 2_000, 8_000)] == [set(), set(), {3}, {3}]
